// A stub of systemctl for test machines without systemd: a shell script on its own PATH that shows units from files and
// records its calls. It starts and reloads nothing; test/exhaustive/systemd/systemd-driver.test.ts tests the real one.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultPath } from '../../../src/platform/process/run-command.js';

export interface StubUnit {
  readonly load?: string;
  readonly active?: string;
  readonly canReload?: 'yes' | 'no';
  readonly type?: string;
  readonly execReload?: string;
  readonly invocation?: string;
  readonly mainPid?: number;
  /** Other properties, as `Job=7`. */
  readonly more?: readonly string[];
}

export interface StubSystemctl {
  /** PATH for DriverContext. */
  readonly programPath: string;
  /** Creates or changes a unit. */
  unit(name: string, state?: StubUnit): void;
  /** Sets the shell command of the next jobs, with the unit in $unit; `exit 0` by default. */
  job(script: string): void;
  /** Sets the shell command that replaces list-units. */
  list(script: string): void;
  /** Requested jobs, as `reload a.service`. */
  jobs(): readonly string[];
}

const program = `#!/bin/sh
while [ "\${1#--no-}" != "$1" ]; do shift; done
verb=$1; unit=
for last; do unit=$last; done
case $verb in
  list-units) [ -e DIR/list ] && . DIR/list; cat DIR/units 2>/dev/null; exit 0 ;;
  show) [ -e "DIR/$unit.show" ] || { echo LoadState=not-found; echo ActiveState=inactive; echo CanReload=no; exit 0; }; cat "DIR/$unit.show" ;;
  *) echo "$verb $unit" >> DIR/jobs; [ -e DIR/job ] && . DIR/job; exit 0 ;;
esac
`;

/**
 * Writes the script into the directory.
 * @returns the PATH with it, and setters of units
 */
export function stubSystemctl(directory: string): StubSystemctl {
  writeFileSync(join(directory, 'systemctl'), program.replaceAll('DIR', directory), { mode: 0o755 });
  const jobs = join(directory, 'jobs');
  return {
    programPath: `${directory}:${defaultPath}`,
    unit: (name, state = {}) => {
      const {
        load = 'loaded',
        active = 'active',
        canReload = 'yes',
        type = 'simple',
        invocation = 'aa11',
        mainPid = 0,
      } = state;
      const reload = state.execReload ?? '/usr/sbin/nginx -s reload';
      const exec = `{ path=/x ; argv[]=${reload} ; ignore_errors=no ; start_time=[n/a] ; pid=0 }`;
      const shown = [
        `LoadState=${load}`,
        `Type=${type}`,
        ...(reload === '' ? [] : [`ExecReload=${exec}`]),
        `ActiveState=${active}`,
        `CanReload=${canReload}`,
        `InvocationID=${invocation}`,
        `MainPID=${mainPid}`,
        ...(state.more ?? []),
      ];
      if (!existsSync(join(directory, `${name}.show`)))
        appendFileSync(join(directory, 'units'), `  ${name} loaded ${active} running A unit of a test\n`);
      writeFileSync(join(directory, `${name}.show`), `${shown.join('\n')}\n`);
    },
    job: (script) => writeFileSync(join(directory, 'job'), `${script}\n`),
    list: (script) => writeFileSync(join(directory, 'list'), `${script}\n`),
    jobs: () => (existsSync(jobs) ? readFileSync(jobs, 'utf8').split('\n').filter(Boolean) : []),
  };
}
