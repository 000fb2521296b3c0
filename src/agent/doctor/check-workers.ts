// `writ doctor`, check `workers`: the members of each group, whether they are alive, and which of them are DNS resolvers. The report of a
// running agent takes precedence, because workers connect to it and it has notified them; without an agent, this check inspects each
// worker. The judge* functions are pure. Notifies no worker.
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
import { accessChecks, readAccess, type WorkerAccess } from './check-access.js';
import { judgeNames, nameFacts } from './check-names.js';
import { judgeProcesses, processFacts } from './check-processes.js';
import { type Checks, type DoctorContext, reportOf, withoutConfig } from './doctor-context.js';
import { fail, type Judged, ok, skip, warn } from './judged.js';

/**
 * Inspects the groups before it returns, because several checks judge the same facts. An error of the inspection
 * becomes a finding.
 * @returns the checks `names`, `workers` and the access of workers to the policy; `workers` is skipped without a
 * configuration
 */
export async function workerChecks(context: DoctorContext): Promise<Checks> {
  const { config, etc } = context;
  if (config === undefined) return [['workers', () => withoutConfig]];
  let checked: readonly GroupCheck[];
  try {
    checked = await checkGroups(context, config);
  } catch (error) {
    return [['workers', () => Promise.reject(error)]];
  }
  const groups = checked.flatMap(({ facts }) => facts ?? []);
  const known = agentReport(context);
  const resolverGroups = checked.filter((one) => one.answersDns).map(({ name }) => name);
  return [
    ['names', () => judgeNames({ ...nameFacts(config, etc), resolverGroups })],
    [
      'workers',
      () => {
        if (known?.groups !== undefined) return known.groups.flatMap((one) => judgeByAgent(one, known));
        return groups.length === 0 ? skip('no group is configured') : groups.map(judgeGroup);
      },
    ],
    ['workers', () => checked.flatMap(({ processes }) => processes)],
    ...accessChecks(
      config,
      groups.map(({ group }) => group),
      checked,
    ),
  ];
}

interface GroupCheck extends WorkerAccess {
  readonly name: string;
  /** Left out for a group that only has a loader. */
  readonly facts?: GroupFacts;
  readonly answersDns: boolean;
  /** A finding for the process of each worker. */
  readonly processes: readonly Judged[];
}

function checkGroups(context: DoctorContext, config: AgentConfig): Promise<GroupCheck[]> {
  const groups = createWorkerGroups(config, {
    kinds: driverKinds,
    runDirectory: config.run,
    log: silentLog(),
    clock: context.clock,
    // The groups are not opened, so they create no file.
    durable: createDurableFs(),
    onLateAnswer: () => undefined,
  });
  return Promise.all(groups.map((group) => checkGroup(group, context, config)));
}

async function checkGroup(
  group: WorkerGroup,
  context: DoctorContext,
  { policy }: AgentConfig,
): Promise<GroupCheck> {
  const { config, driver } = group;
  const { name, reset } = config;
  const none = {
    ...{ name, readers: [], confined: [], processes: [] },
    answersDns: reset?.driver === 'kresd',
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
      ...readAccess(config, { workers, pids, policy, etc: context.etc }),
      answersDns: none.answersDns || pids.some(listensOnDnsPort),
      processes: judgeProcesses(config, await processFacts(group, workers)),
    };
  } catch (error) {
    return { ...none, facts: { ...common, members: [], unlisted: toWritError(error).message } };
  }
}

/** @returns the status report if an agent runs or may run; undefined after its stop, or without a report */
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
  // Workers that connect to an agent are known from its last report only.
  const names = config.reset?.driver === 'native' ? known.map(({ worker }) => worker) : workers;
  return mapBounded(names, maxParallelNotices, async (worker) => {
    const liveness = (await driver?.liveness?.(worker)) ?? 'unknown';
    return { worker, liveness, state: known.find((one) => one.worker === worker)?.state };
  });
}

/** @returns a finding for each one of the agent about this group; ok if it has none */
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

/** @returns the process ids that the driver knows; a worker that connects or listens on a socket has no reliable one */
async function pidsOf({ driver }: WorkerGroup, workers: readonly string[]): Promise<number[]> {
  const pids = await mapBounded(workers, maxParallelNotices, async (worker) => driver?.pid?.(worker));
  return [...new Set(pids)].filter((pid) => pid !== undefined && findProcess(pid) !== undefined) as number[];
}

export interface GroupFacts {
  readonly group: string;
  readonly driver: string;
  /** The least number of workers by the configuration. */
  readonly min: number;
  readonly members: readonly MemberFacts[];
  /** Why the driver could not list the members. */
  readonly unlisted?: string;
}

export interface MemberFacts {
  readonly worker: string;
  readonly liveness: 'alive' | 'dead' | 'unknown';
  /** The result of the last notification; undefined without one. */
  readonly state?: WorkerStatus['state'] | undefined;
}

/** @returns a failure below `min` or if no worker can be listed; a warning for dead or pending workers */
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
  const alive = members.every(({ liveness }) => liveness === 'alive') ? 'all alive' : 'liveness unknown';
  return ok(`${group}: ${count} ${count === 1 ? 'worker' : 'workers'}, ${alive}`);
}

const pendingStates: ReadonlySet<WorkerStatus['state']> = new Set(['unreachable', 'refused', 'pending']);
const maxNamed = 5;

function named(members: readonly MemberFacts[]): string {
  const names = members.slice(0, maxNamed).map(({ worker }) => worker);
  return members.length > maxNamed ? `${names.join(', ')}, ...` : names.join(', ');
}

/** Port 53 in a table of /proc/PID/net. */
const dnsPort = ':0035 ';
const maxTableBytes = 4_000_000;
const maxDescriptors = 4096;

/** Whether a process has a socket on port 53, by the socket tables of the kernel. */
function listensOnDnsPort(pid: number): boolean {
  const inodes = ['udp', 'udp6', 'tcp', 'tcp6'].flatMap((table) => {
    const lines = (readProcText(`/proc/${pid}/net/${table}`, maxTableBytes) ?? '').split('\n').slice(1);
    return lines
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([, local = '', , , , , , , , inode = '']) => (`${local} `.endsWith(dnsPort) ? [inode] : []));
  });
  if (inodes.length === 0) return false;
  const descriptors = listProcNames(`/proc/${pid}/fd`).names.slice(0, maxDescriptors);
  const links = new Set(descriptors.map((one) => readProcLink(`/proc/${pid}/fd/${one}`).text));
  return inodes.some((inode) => links.has(`socket:[${inode}]`));
}
