# Functions of every scenario. A recording is a number, and files of that number: its title, what came out, how it ended, or
# a tree as it lay there. The clock of Writ is one second further at each command, and stands still during it.
set -u
recorded=0 second=0
OUT=/dev/null
declare -A pids titles

# next TITLE: begins a recording; OUT is the file with the stdout of it.
next() {
  recorded=$((recorded + 1))
  record=$RECORDS/$(printf %04d "$recorded")
  OUT=$record.stdout
  printf '%s\n' "$*" >"$record.title"
}

# pinned ARGUMENTS: node with the clock and the random bytes of this moment of the scenario.
pinned() {
  BEHAVIOUR_NOW_MS=$((START_MS + second * 1000)) BEHAVIOUR_SEED=$second \
    exec "$NODE" --disable-warning=ExperimentalWarning --import "$TOOLS/pinned-process.js" "$@"
}

# writ ARGUMENTS: one command, to its end.
writ() {
  second=$((second + 1))
  local form=()
  if [ "$FORM" = json ]; then form=(--json); fi
  next "\$ writ $*${form:+ --json}"
  (pinned "$PROGRAM" "$@" "${form[@]}") >"$OUT" 2>"$record.stderr" <"${INPUT:-/dev/null}"
  echo $? >"$record.exit"
}

# run COMMAND: another program, to its end.
run() {
  next "\$ $*"
  "$@" >"$OUT" 2>"$record.stderr" </dev/null
  echo $? >"$record.exit"
}

# later SECONDS: time goes by for the program, not for us.
later() { second=$((second + $1)); }

# start NAME ARGUMENTS: `writ ARGUMENTS` that goes on; stop or kill ends it and records it.
start() {
  local name=$1
  shift
  second=$((second + 1))
  titles[$name]="\$ writ $* &"
  (pinned "$PROGRAM" "$@") >"$RECORDS/$name.out" 2>"$RECORDS/$name.err" </dev/null &
  pids[$name]=$!
}

# start_other NAME COMMAND: the same of another program.
start_other() {
  local name=$1
  shift
  titles[$name]="\$ $* &"
  "$@" >"$RECORDS/$name.out" 2>"$RECORDS/$name.err" </dev/null &
  pids[$name]=$!
}

# stop NAME [SIGNAL]: ends what start began, and records what it said.
stop() {
  local name=$1 signal=${2:-TERM}
  kill -s "$signal" "${pids[$name]}" 2>/dev/null
  wait "${pids[$name]}" 2>/dev/null
  local code=$?
  next "${titles[$name]} ended by $signal"
  mv "$RECORDS/$name.out" "$OUT"
  mv "$RECORDS/$name.err" "$record.stderr"
  echo $code >"$record.exit"
  unset "pids[$name]"
}

# await COMMAND: until it succeeds, for at most a minute.
await() {
  for _ in $(seq 1200); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.05
  done
  echo "never came: $*" >&2
  exit 9
}
await_text() { await grep -q -e "$2" "$1"; }
# await_said NAME TEXT: until what start began has said it.
await_said() { await grep -q -e "$2" "$RECORDS/$1.out" "$RECORDS/$1.err"; }

# both ARGUMENTS: a question, as a person and as a program asks it.
both() {
  writ "$@"
  FORM=json writ "$@"
}

# get ARGUMENTS: an answer over HTTP with its header.
get() { run curl -s -i --path-as-is "$@"; }

# look DIRECTORY: records every file in it, with modes; contents are read at the end of the scenario.
look() {
  next "look at $1"
  cp -a "$1" "$record.tree" 2>"$record.stderr"
}

# ask SOCKET ANSWERS: sends stdin to a socket as it is, and records so many lines that come back, or all until its end.
ask() {
  next "ask $1"
  "$NODE" "$TOOLS/ask-socket.js" "$1" "$2" >"$OUT" 2>"$record.stderr"
  echo $? >"$record.exit"
}

host_config() { # host_config LINES: agent.yaml of a host that follows the repository of the scenario
  cat >agent.yaml <<END
repository: file://$W/repo
root: $W/repo/metadata/1.root.json
state: $W/state
run: $W/run
host: { id: host-1, labels: { site: here } }
poll: { every: 1h }
events: { file: $W/events.jsonl }
sandbox: off
$1
END
}

publish() { # publish REVISION SOURCE BUNDLE
  writ publish "$2" --repository repo --keys keys --bundle "$3" --revision "$1"
}

# Reports the command that still runs when a scenario ends early.
end_all() {
  for name in "${!pids[@]}"; do stop "$name" KILL; done
}
trap end_all EXIT
