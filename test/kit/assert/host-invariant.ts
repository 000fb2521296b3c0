// The invariant of a host after a crash. One complete policy is active: the old or the new one, and the new one if it was
// acknowledged. A start removes temporary files, and the next cycle succeeds. The test makes the state of the disk.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { closeHost } from '../../../src/agent/startup/open-host.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { HostPaths } from '../../../src/agent/state/paths.js';
import { isTemporaryName } from '../../../src/platform/disk/durable-fs.js';

/** Contents by path below `policy/current`, as `access/a.yaml`. */
export type PolicyFiles = Readonly<Record<string, string>>;
/** Each complete policy that this host may have, by a name that the test chooses. */
export type Policies = Readonly<Record<string, PolicyFiles>>;

/** Name of a host without a policy. */
export const noPolicy = 'none';

export interface Invariant {
  readonly policies: Policies;
  /** Names that may be active after the start: old and new; only the new one after its acknowledgement. */
  readonly allowed: readonly string[];
  /** Names that may be active before a start that repairs; `allowed` by default. */
  readonly found?: readonly string[];
  /** Name that is active after the next cycle; the argument is the name active before it. */
  readonly ends: string | ((active: string) => string);
  /** Opens the host as a new process does. */
  readonly open: () => Host | Promise<Host>;
  /** Successful outcomes of that cycle; a host with a held release stays `deferred`. */
  readonly succeeds?: readonly string[];
  /** Whether a block is allowed; the active policy then stays active. False by default. */
  readonly mayBlock?: boolean;
  /** Further assertions on the started host, before the cycle. */
  readonly alsoHolds?: (host: Host) => void | Promise<void>;
  /** Further assertions after the second cycle. */
  readonly afterwards?: (host: Host) => void;
}

/**
 * Starts the host, runs two cycles without faults, and asserts the invariant before, between and after them.
 * @param paths of the state directory after the crash
 * @returns the name of the policy that was active after the start
 * @throws AssertionError if the invariant is violated
 */
export async function holdInvariant(paths: HostPaths, invariant: Invariant): Promise<string> {
  const { policies, allowed, mayBlock = false } = invariant;
  // Workers start with the machine and use the policy before the agent starts.
  requireAllowed('before the start', wholePolicy(paths, policies), invariant.found ?? allowed);
  const host = await invariant.open();
  try {
    const signal = new AbortController().signal;
    const { recovered, damage } = await startHost(host, { cycle: newCycleId(), signal });
    assert.equal(damage, undefined, `damaged: ${damage?.message} ${JSON.stringify(damage?.facts)}`);
    assert.ok(mayBlock || recovered?.result.outcome !== 'blocked', problemsOf(recovered));
    const active = wholePolicy(paths, policies);
    requireAllowed('after the start', active, allowed);
    requireSwept(paths);
    await invariant.alsoHolds?.(host);
    const clean = await cycle(host);
    const { ends, succeeds } = mayBlock ? orBlocked(clean, invariant) : wanted(invariant);
    assert.ok(succeeds.includes(clean.result.outcome), `clean cycle: ${problemsOf(clean)}`);
    const expected = typeof ends === 'string' ? ends : ends(active);
    assert.equal(wholePolicy(paths, policies), expected, 'after the clean cycle');
    requireSwept(paths);
    const next = await cycle(host);
    assert.ok(
      succeeds.includes(next.result.outcome) && !next.result.changed,
      `second cycle: ${problemsOf(next)}`,
    );
    invariant.afterwards?.(host);
    return active;
  } finally {
    await closeHost(host);
  }
}

function wanted({
  ends,
  succeeds = ['activated', 'unchanged'],
}: Invariant): Required<Pick<Invariant, 'ends' | 'succeeds'>> {
  return { ends, succeeds };
}

function orBlocked(clean: CycleEnd, invariant: Invariant): ReturnType<typeof wanted> {
  if (clean.result.outcome !== 'blocked') return wanted(invariant);
  return { ends: (active) => active, succeeds: ['blocked'] };
}

function cycle(host: Host): Promise<CycleEnd> {
  const signal = new AbortController().signal;
  return syncCycle(host, { cycle: newCycleId(), trigger: 'pull', force: 'no', signal });
}

function problemsOf(end: CycleEnd | undefined): string {
  return `${end?.result.outcome} ${JSON.stringify(end?.result.problems)}`;
}

function requireAllowed(when: string, active: string, allowed: readonly string[]): void {
  assert.ok(
    allowed.includes(active),
    `${when} the policy '${active}' is active, not one of ${allowed.join(', ')}`,
  );
}

/**
 * Reads the policy that `current` names, as a worker does.
 * @returns the name of the equal policy; `none` if there is no `current`
 * @throws AssertionError if no policy is equal or a path is not readable for workers
 */
export function wholePolicy(paths: Pick<HostPaths, 'current' | 'policy'>, policies: Policies): string {
  if (fs.lstatSync(paths.current, { throwIfNoEntry: false }) === undefined) return noPolicy;
  const active = fs.realpathSync(paths.current);
  requireReadable(paths.policy, active);
  const found: Record<string, string> = {};
  for (const bundle of fs.readdirSync(active)) {
    const tree = fs.realpathSync(join(active, bundle));
    requireReadable(paths.policy, tree);
    for (const path of filesBelow(tree))
      found[join(bundle, path)] = fs.readFileSync(join(tree, path), 'utf8');
  }
  const same = Object.entries(policies).find(([, files]) => isSame(files, found));
  assert.ok(same, `${fs.readlinkSync(paths.current)} is no whole policy: ${JSON.stringify(found)}`);
  return same[0];
}

function isSame(files: PolicyFiles, found: PolicyFiles): boolean {
  const names = Object.keys(files);
  return names.length === Object.keys(found).length && names.every((name) => files[name] === found[name]);
}

function filesBelow(tree: string): string[] {
  return fs
    .readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter((one) => !one.isDirectory())
    .map((one) => join(one.parentPath, one.name).slice(tree.length + 1));
}

/** Fails if a mode was lost under a strict umask, because no worker could read the policy. */
function requireReadable(policy: string, path: string): void {
  for (let part = path; part.length >= policy.length; part = join(part, '..')) {
    const mode = fs.statSync(part).mode & 0o555;
    assert.equal(mode, 0o555, `${part} has mode ${mode.toString(8)}`);
  }
}

/** Asserts that no staging area, journal or temporary name of an unfinished cycle is left. */
export function requireSwept(paths: Pick<HostPaths, 'state' | 'policy' | 'staging' | 'journal'>): void {
  assert.deepEqual(fs.readdirSync(paths.staging), [], 'staging/ is empty');
  assert.equal(fs.existsSync(paths.journal), false, 'the journal is cleared');
  const temporary = [paths.state, paths.policy]
    .flatMap((directory) => fs.readdirSync(directory, { recursive: true, encoding: 'utf8' }))
    .filter((name) => isTemporaryName(basename(name)) || basename(name).startsWith('.current-'));
  assert.deepEqual(temporary, [], 'no temporary name is left');
}
