// `writ doctor` on the workers: who of each group is there and lives, and which of them answer for names. A running agent is
// believed: its workers are connected to it, and it has asked them already; without one each is looked at. Facts are gathered
// and judged side by side; the judges are pure. No worker is notified of anything.
import type { AgentConfig } from '../../core/config/config.js';
import { toWritError } from '../../core/errors.js';
import type { GroupStatus, StatusReport, WorkerStatus } from '../../core/status/status.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { listProcNames, readProcLink, readProcText } from '../../platform/process/proc-files.js';
import { findProcess } from '../../platform/process/processes.js';
import { silentLog } from '../../platform/telemetry/silent-log.js';
import { driverKinds } from '../../workers/registry.js';
import { createWorkerGroups, mapBounded, maxParallelNotices } from '../notify/worker-groups.js';
import type { WorkerGroup } from '../state/host.js';
import { type Access, accessChecks, accessOf } from './check-access.js';
import { judgeNames, nameFacts } from './check-names.js';
import { judgeProcesses, processFacts } from './check-processes.js';
import { type Checks, type DoctorContext, reportOf, withoutConfig } from './doctor-context.js';
import { fail, type Judged, ok, skip, warn } from './judged.js';

export async function workerChecks(context: DoctorContext): Promise<Checks> {
  const { config, etc } = context;
  if (config === undefined) return [['workers', () => withoutConfig]];
  let looks: readonly GroupLook[];
  try {
    looks = await lookAtGroups(context, config);
  } catch (error) {
    return [['workers', () => Promise.reject(error)]];
  }
  const groups = looks.flatMap(({ facts }) => facts ?? []);
  const known = agentReport(context);
  const resolverGroups = looks.filter((one) => one.answersNames).map(({ name }) => name);
  return [
    ['names', () => judgeNames({ ...nameFacts(config, etc), resolverGroups })],
    [
      'workers',
      () => {
        if (known?.groups !== undefined) return known.groups.flatMap((one) => judgeByAgent(one, known));
        return groups.length === 0 ? skip('no group is configured') : groups.map(judgeGroup);
      },
    ],
    ['workers', () => looks.flatMap(({ processes }) => processes)],
    ...accessChecks(
      config,
      groups.map(({ group }) => group),
      looks,
    ),
  ];
}

interface GroupLook extends Access {
  readonly name: string;
  /** Left out for a group that only has a loader. */
  readonly facts?: GroupFacts;
  readonly answersNames: boolean;
  /** What is said of the process of each worker. */
  readonly processes: readonly Judged[];
}

function lookAtGroups(context: DoctorContext, config: AgentConfig): Promise<GroupLook[]> {
  const groups = createWorkerGroups(config, {
    kinds: driverKinds,
    runDirectory: config.run,
    log: silentLog(),
    clock: context.clock,
    // Nothing is opened, so nothing is made on disk.
    durable: createDurableFs(),
    onLateAnswer: () => undefined,
  });
  return Promise.all(groups.map((group) => lookAtGroup(group, context, config)));
}

async function lookAtGroup(
  group: WorkerGroup,
  context: DoctorContext,
  { policy }: AgentConfig,
): Promise<GroupLook> {
  const { config, driver } = group;
  const { name, reset } = config;
  const none = {
    ...{ name, readers: [], confined: [], processes: [] },
    answersNames: reset?.driver === 'kresd',
  };
  if (driver === undefined || reset === undefined) return none;
  const common = { group: name, driver: reset.driver, min: reset.min };
  try {
    const workers = reset.driver === 'native' ? [] : await driver.members();
    const members = agentReport(context) === undefined ? await membersOf(group, workers, context) : [];
    const pids = await pidsOf(group, workers);
    return {
      name,
      facts: { ...common, members },
      ...accessOf(config, { workers, pids, policy, etc: context.etc }),
      answersNames: none.answersNames || pids.some(listensOnNames),
      processes: judgeProcesses(config, await processFacts(group, workers)),
    };
  } catch (error) {
    return { ...none, facts: { ...common, members: [], unlisted: toWritError(error).message } };
  }
}

/** What status says while an agent runs. */
function agentReport(context: DoctorContext): StatusReport | undefined {
  const report = reportOf(context);
  return report === undefined || report.agent === 'stop' ? undefined : report;
}

async function membersOf(
  { config, driver }: WorkerGroup,
  workers: readonly string[],
  context: DoctorContext,
): Promise<MemberFacts[]> {
  const known = reportOf(context)?.workers.filter((one) => one.group === config.name) ?? [];
  // Who connects to an agent is known from its last report alone.
  const names = config.reset?.driver === 'native' ? known.map(({ worker }) => worker) : workers;
  return mapBounded(names, maxParallelNotices, async (worker) => {
    const liveness = (await driver?.liveness?.(worker)) ?? 'unknown';
    return { worker, liveness, state: known.find((one) => one.worker === worker)?.state };
  });
}

/** @returns a finding for each that the agent has, or one that all is well */
export function judgeByAgent(
  { group, workers, confirmed, findings }: GroupStatus,
  { generation }: Pick<StatusReport, 'generation'>,
): Judged[] {
  if (generation === undefined) return [skip(`${group}: no policy is active yet`)];
  if (findings.length > 0)
    return findings.slice(0, maxNamed).map(({ level, code, text }) => {
      const [line = ''] = text.split('\n', 1);
      return { ...(level === 'critical' ? fail : warn)(`${group}: ${line}`, 'writ status'), code };
    });
  if (workers === 0) return [warn(`${group} has no worker now`, 'start the workers')];
  const count = `${workers} ${workers === 1 ? 'worker' : 'workers'}`;
  return [ok(`${group}: ${count}, ${confirmed} confirmed what is active`)];
}

/** Where the driver knows them: a worker that only connects, or listens on a socket, has none that can be believed. */
async function pidsOf({ driver }: WorkerGroup, workers: readonly string[]): Promise<number[]> {
  const pids = await mapBounded(workers, maxParallelNotices, async (worker) => driver?.pid?.(worker));
  return [...new Set(pids)].filter((pid) => pid !== undefined && findProcess(pid) !== undefined) as number[];
}

export interface GroupFacts {
  readonly group: string;
  readonly driver: string;
  /** How many the configuration wants to be there. */
  readonly min: number;
  readonly members: readonly MemberFacts[];
  /** Why nobody could say who they are. */
  readonly unlisted?: string;
}

export interface MemberFacts {
  readonly worker: string;
  readonly liveness: 'alive' | 'dead' | 'unknown';
  /** As the last notification ended; undefined when there was none. */
  readonly state?: WorkerStatus['state'] | undefined;
}

export function judgeGroup({ group, driver, min, members, unlisted }: GroupFacts): Judged {
  if (unlisted !== undefined) return fail(`${group}: ${unlisted}`, 'writ status');
  const count = members.length;
  if (count === 0) {
    const text = `${group} has no worker now (${driver}${min > 0 ? `, at least ${min} wanted` : ''})`;
    return (min > 0 ? fail : warn)(text, 'start the workers, or fix the pattern that finds them');
  }
  const dead = members.filter(({ liveness }) => liveness === 'dead');
  if (dead.length > 0) {
    const living = count - dead.length;
    const text = `${group}: ${dead.length} of ${count} dead: ${named(dead)}`;
    const next = 'read their log; they are notified when they are back';
    return (living === 0 || living < min ? fail : warn)(text, next);
  }
  if (count < min) return fail(`${group}: ${count} found, at least ${min} required`, 'start the others');
  const pending = members.filter(({ state }) => state !== undefined && pendingStates.has(state));
  if (pending.length > 0) {
    const text = `${group}: ${pending.length} of ${count} not notified of the active generation: ${named(pending)}`;
    return warn(text, 'writ status');
  }
  const alive = members.every(({ liveness }) => liveness === 'alive') ? 'all alive' : 'of unknown life';
  return ok(`${group}: ${count} ${count === 1 ? 'worker' : 'workers'}, ${alive}`);
}

const pendingStates: ReadonlySet<WorkerStatus['state']> = new Set(['unreachable', 'refused', 'pending']);
const maxNamed = 5;

function named(members: readonly MemberFacts[]): string {
  const names = members.slice(0, maxNamed).map(({ worker }) => worker);
  return members.length > maxNamed ? `${names.join(', ')}, ...` : names.join(', ');
}

const namePort = ':0035 ';
const maxTableBytes = 4_000_000;
const maxDescriptors = 4096;

/** Whether a process has a socket on port 53, by the kernel's tables of sockets. */
function listensOnNames(pid: number): boolean {
  const inodes = ['udp', 'udp6', 'tcp', 'tcp6'].flatMap((table) => {
    const lines = (readProcText(`/proc/${pid}/net/${table}`, maxTableBytes) ?? '').split('\n').slice(1);
    return lines
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([, local = '', , , , , , , , inode = '']) => (`${local} `.endsWith(namePort) ? [inode] : []));
  });
  if (inodes.length === 0) return false;
  const descriptors = listProcNames(`/proc/${pid}/fd`).names.slice(0, maxDescriptors);
  const links = new Set(descriptors.map((one) => readProcLink(`/proc/${pid}/fd/${one}`).text));
  return inodes.some((inode) => links.has(`socket:[${inode}]`));
}
