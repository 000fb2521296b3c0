// `writ doctor`, check `workers`, processes: the process that each driver takes for its worker, with command line and user, so that an
// operator can verify it before Writ sends it a signal. The user matters: a process of another user may have taken a free port. Facts
// come from the drivers; `judgeProcesses` is pure. Sends no signal.
import { readCommandLine } from '../../platform/process/process-details.js';
import { findProcess } from '../../platform/process/processes.js';
import { userName } from '../../platform/users/user-id.js';
import type { Daemon, Driver } from '../../workers/contract/driver.js';
import { mapBounded, maxParallelNotices } from '../notify/worker-groups.js';
import type { WorkerGroup } from '../state/host.js';
import { type Judged, ok, warn } from './judged.js';

/** The process of one worker, or why it is dead or uncertain. */
export type ProcessFacts = { readonly worker: string } & (
  | {
      readonly kind: 'found';
      readonly pid: number;
      readonly user?: string;
      readonly commandLine: string | undefined;
      /** It is stopped by a signal or a debugger. */
      readonly isStopped?: boolean;
    }
  | Exclude<Daemon, { kind: 'found' }>
);

const maxShown = 5;

/** @returns the facts of the first five workers; empty if the driver does not know processes */
export async function processFacts(
  { driver }: Pick<WorkerGroup, 'driver'>,
  workers: readonly string[],
): Promise<readonly ProcessFacts[]> {
  const found = await mapBounded(workers.slice(0, maxShown), maxParallelNotices, (worker) =>
    factsOf(driver, worker),
  );
  return found.flatMap((one) => one ?? []);
}

async function factsOf(driver: Driver | undefined, worker: string): Promise<ProcessFacts | undefined> {
  const daemon = await driver?.process?.(worker);
  if (daemon !== undefined && daemon.kind !== 'found') return { worker, ...daemon };
  const pid = daemon?.process.pid ?? (await driver?.pid?.(worker));
  if (pid === undefined) return undefined;
  const process = findProcess(pid);
  const uid = (daemon?.process ?? process)?.effectiveUid;
  const user = uid === undefined ? {} : { user: userName(uid) };
  const stopped = process?.stopped === 'yes' ? { isStopped: true } : {};
  return { worker, kind: 'found', pid, ...user, commandLine: readCommandLine(pid), ...stopped };
}

/** @returns a finding for each known or uncertain process; the group's finding reports dead workers */
export function judgeProcesses(
  group: Pick<WorkerGroup['config'], 'name' | 'reset'>,
  facts: readonly ProcessFacts[],
): Judged[] {
  const { driver, options = {} } = group.reset ?? {};
  const signal = driver === 'signal' ? `SIG${String(options['signal'])}` : undefined;
  return facts.flatMap((one): Judged[] => {
    const name = `${group.name}/${one.worker}`;
    if (one.kind !== 'found') {
      if (one.kind === 'dead') return [];
      const next = one.hint ?? 'give `process` of its group';
      return [
        { ...warn(`${name}: its process is not certain: ${one.reason}`, next), code: 'PROCESS_UNKNOWN' },
      ];
    }
    if (one.isStopped === true) return [judgeStopped(name, one.pid)];
    const what = signal === undefined ? 'is' : `gets ${signal}:`;
    return [
      ok(
        `${name} ${what} process ${one.pid}${one.user === undefined ? '' : ` of ${one.user}`}: ${one.commandLine ?? 'its command line cannot be read'}`,
      ),
    ];
  });
}

/** No other check finds a stopped process: it exists, and its supervisor reports it as running. */
function judgeStopped(name: string, pid: number): Judged {
  const text =
    `${name}: process ${pid} is stopped (SIGSTOP, a debugger): it is not dead and gives no answer, ` +
    'and a release can settle without an observation, because its probe gets no answer';
  return warn(text, `kill -CONT ${pid}`);
}
