// Two programs under supervisord that read a file at their start and at SIGHUP, and keep the old content when the new one is
// invalid. Each writes what it uses to a file.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../kit/programs/processes.js';
import { supervisordPlaces, writeSupervisordConfig } from '../../kit/programs/supervisord-config.js';
import type { Daemon } from '../parts/daemon.js';
import { joinVersions, runInGroup, stdoutOf } from '../parts/processes.js';
import { stampPlaceholder } from '../parts/zones.js';

const program = `#!/bin/sh
read_it() { case $(cat "$1" 2>/dev/null) in v*) rules=$(head -n 1 "$1") ;; esac; }
answer() { echo "$rules" > "$1.next"; mv "$1.next" "$1"; }
read_it "$2"; answer "$1"
trap 'read_it "$2"; answer "$1"' HUP
echo $$ > "$1.pid"
while kill -0 $PPID 2>/dev/null; do sleep 0.1; done
`;

export const supervisord: Daemon = {
  name: 'supervisord',
  packages: ['supervisor'],
  programs: ['supervisord', 'supervisorctl'],
  process: 'daemon',
  stamps: ['rules'],
  good: (version) => ({ rules: `${stampPlaceholder}\n# ${version}\n` }),
  bad: () => ({ rules: 'nonsense @writ.serial@\n' }),
  half: { never: 'each program reads one file, at once' },
  empty: { never: 'nothing but the programs themselves could' },
  open: ({ dir, policy }) => {
    const { file: config, socket } = supervisordPlaces(dir);
    const script = join(dir, 'worker.sh');
    const uses = (one: number): string => join(dir, `uses${one}`);
    /** Excludes an unrelated process that has reused the pid. */
    const pidOf = (one: number): number | undefined => {
      if (!existsSync(`${uses(one)}.pid`)) return undefined;
      const pid = Number(readFileSync(`${uses(one)}.pid`, 'utf8'));
      const command = isAlive(pid) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : '';
      return command.includes(uses(one)) ? pid : undefined;
    };
    const answerOf = (one: number): string | undefined =>
      pidOf(one) === undefined ? undefined : readFileSync(uses(one), 'utf8').trim() || undefined;
    const control = (...args: string[]): Promise<string | undefined> =>
      stdoutOf('supervisorctl', '-c', config, ...args);
    const head = runInGroup({
      argv: ['supervisord', '-c', config],
      log: join(dir, 'log'),
      cwd: dir,
      isUp: () => existsSync(socket) && [0, 1].every((one) => pidOf(one) !== undefined),
    });
    // Each program has its own process group.
    const signalPrograms = (signal: NodeJS.Signals): void => {
      for (const one of [0, 1]) {
        const pid = pidOf(one);
        if (pid !== undefined) process.kill(-pid, signal);
      }
    };
    const kill = async (): Promise<void> => {
      await head.kill();
      signalPrograms('SIGKILL');
    };
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/run/supervisor.sock', socket],
        ['/srv/web/worker', `/bin/sh ${script} ${dir}/uses%(process_num)d`],
        ['/srv/web/uses', `${dir}/uses`],
      ],
      prepare: (own) => {
        writeFileSync(script, program);
        writeSupervisordConfig(dir, own);
      },
      start: head.start,
      kill,
      stopAndGo: (signal) => {
        head.stopAndGo(signal);
        signalPrograms(signal);
      },
      [Symbol.asyncDispose]: kill,
      control,
      ask: async () => joinVersions([answerOf(0), answerOf(1)]),
    };
  },
};
