// Test doubles for programs that one machine without root cannot run: copies to other machines, accounts, and systemd. Each
// accepts exactly the arguments of docs/operations.md and fails for others. The machines are directories in WORLD; MACHINE is
// the one that the command runs on.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writProgram } from '../../kit/cli/writ-program.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const units = join(projectRoot, 'packaging/systemd');
const writ = `exec "${process.execPath}" "${writProgram}" "$@"`;

/** Copies directories with a trailing slash, and files; `user@name:/path` is a path on another machine. */
const rsync = `
[ "$1" = -a ] || { echo "rsync: only with -a" >&2; exit 1; }
shift
exclude=
case "$1" in --exclude=*) exclude=$1; shift;; esac
at() { case "$1" in *@*:/*) m=\${1#*@}; echo "$WORLD/\${m%%:*}\${m#*:}";; *) echo "$1";; esac; }
for last; do :; done
to=$(at "$last")
while [ $# -gt 1 ]; do
  from=$(at "$1")
  case "$from" in
    */) mkdir -p "$to" && tar -C "$from" $exclude -cf - . | tar -C "$to" -xf - || exit 1;;
    *) cp -p "$from" "$to" || exit 1;;
  esac
  shift
done`;

/** Installs the files of Writ's package that the page uses; `lib` records which machines have it. */
const apt = `
[ "$1" = install ] || exit 1
shift
here="$WORLD/$MACHINE"; mkdir -p "$here/lib"
for file; do
  case "$file" in
    ./writ_*.deb) touch "$here/lib/writ-agent";;
    ./writ-server_*.deb) touch "$here/lib/writ-server"; mkdir -p "$here/srv/writ/repo";;
    *) echo "E: Unable to locate package $file" >&2; exit 100;;
  esac
done`;

/** Runs the ExecStart of Writ's unit with its EnvironmentFile, and waits for its readiness notification. */
const systemctl = `
verb=$1; shift
[ "$verb" = enable ] && { [ "$1" = --now ] || exit 1; verb=start; shift; }
name=$1
place="$WORLD/$MACHINE/run"; mkdir -p "$place"
log="$place/$name.log"; pid="$place/$name.pid"
stop() {
  [ -f "$pid" ] || return 0
  kill "$(cat "$pid")" 2>/dev/null
  while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.02; done
  rm -f "$pid"
}
start() {
  [ -f "$pid" ] && return 0
  [ -f "$WORLD/$MACHINE/lib/$name" ] || { echo "Unit $name.service not found." >&2; exit 5; }
  unit="${units}/$name.service"
  exec_start=$(sed -n "s#^ExecStart=/usr/bin/##p" "$unit" | sed -E "s# /(etc|srv|var)/# $WORLD/$MACHINE/\\1/#g")
  env="$WORLD/$MACHINE$(sed -n 's#^EnvironmentFile=-##p' "$unit")"
  if [ -f "$env" ]; then set -a; . "$env"; set +a; fi
  : >"$log"
  setsid sh -c "exec $exec_start" >>"$log" 2>&1 </dev/null &
  echo $! >"$pid"
  tries=0
  until grep -Eq 'LISTENING|"state":"run"' "$log"; do
    kill -0 "$(cat "$pid")" 2>/dev/null || { cat "$log" >&2; rm -f "$pid"; exit 1; }
    tries=$((tries + 1)); [ $tries -lt 500 ] || exit 1
    sleep 0.02
  done
}
case "$verb" in
  start) start;;
  stop) stop;;
  restart) stop; start;;
  disable) [ "$1" = --now ] && { name=$2; pid="$place/$name.pid"; }; stop;;
  *) echo "systemctl: $verb is not known here" >&2; exit 1;;
esac`;

/** Requires the named files only, because all files belong to the test already. */
const chown = `[ "$1" = -R ] && [ "$2" = writ: ] && shift 2 && ls "$@" >/dev/null`;

/** Writes the programs to a directory, for the front of PATH. */
export function writeStandIns(directory: string): void {
  mkdirSync(directory);
  for (const [name, script] of Object.entries({ writ, rsync, systemctl, apt, chown })) {
    const path = join(directory, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  }
}
