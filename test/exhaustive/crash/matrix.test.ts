// The crash matrix within the time of a build: every label has each kind of fault once, at a moment that the seed chooses.
// `npm run crash` tries every fault at every moment. An operation that no cycle performs fails here.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sampled } from '../../kit/assert/sample.js';
import { seeded, testSeed } from '../../kit/assert/seeded.js';
import type { MatrixCase } from './matrix-case.js';
import { matrixCycles } from './matrix-cycles.js';
import type { Moment } from './matrix-faults.js';
import { samplePlan } from './matrix-plan.js';
import { type MatrixPool, type MatrixViolation, openPool } from './matrix-pool.js';
import { labelsInSources } from './operation-labels.js';

const sources = fileURLToPath(new URL('../../../../src', import.meta.url));

const sameLines = 'the lines of durable-fs that other labels with :discard run, as trust.timestamp:discard';
const sameDirectory = 'both names are in one directory, which is flushed once';
const afterSecondCrash =
  'only when a start could not remove the files of a crash, and a second crash happened there';
const prepared = 'the start has just created it: only when another process removes it during the run';

const confined =
  'only a root agent with bubblewrap changes the owner of scratch: before the swap it is removed like hook.scratch';
const ofDiff = 'no part of a host: a directory of its own, that `writ diff --server` makes and removes';
const ofEvents =
  'no part of the policy: a file of events that fails changes no outcome (test/unit/agent/report/events-file)';

const largeDelegations =
  'only above 100 MB of delegated roles: a missing role is downloaded again (test/unit/trust/store/delegated-files)';

const onOverlayfs =
  'only after a crash during a copy that overlayfs requires: each step is killed in test/unit/platform/disk/durable-rename';
const ofNotes =
  'no part of the policy: only a web server names a version, and a lost note costs one header (test/unit/agent/staging/resume-crashes)';

const ofIdentity =
  'no part of the policy: an id that cannot be stored lasts for one process (test/unit/agent/identity/install-id)';
const ofCheck =
  'no part of a host: a scratch directory of one `writ check`, outside the state (test/scenario/cli/commands/check)';
const ofFleet =
  'no part of the policy: no cycle performs them; each is killed in test/unit/agent/fleet/host-state';

const ofPersons =
  'only after an operator moved the trust store: the remaining floors belong to the same repository (test/scenario/start/trust-floors)';

/** Labels without a case, each with its reason. */
const exceptions: Readonly<Record<string, string>> = {
  'hook.owner': confined,
  'check.fetch': ofCheck,
  'check.place': ofCheck,
  'check.staging': ofCheck,
  'diff.bundle': ofDiff,
  'diff.remove': ofDiff,
  'diff.scratch': ofDiff,
  'diff.trust': ofDiff,
  'diff.trust-directory': ofDiff,
  'events.append': ofEvents,
  'events.append:flush-directory': ofEvents,
  'events.rotate:rename': ofEvents,
  'events.rotate:flush-to': ofEvents,
  'events.rotate:flush-from': ofEvents,
  'flush.record-aside:flush-from': sameDirectory,
  'flush.record-back:flush-from': sameDirectory,
  'recover.record-back:flush-from': sameDirectory,
  'history.rotate:flush-from': sameDirectory,
  'recover.sweep-copy': onOverlayfs,
  'recover.sweep-moved': onOverlayfs,
  'install-id:discard': ofIdentity,
  'install-id:flush-directory': ofIdentity,
  'install-id:rename': ofIdentity,
  'install-id:write': ofIdentity,
  'fleet.directory': ofFleet,
  'fleet.counter:discard': ofFleet,
  'fleet.counter:flush-directory': ofFleet,
  'fleet.counter:rename': ofFleet,
  'fleet.counter:write': ofFleet,
  'fleet.key:discard': ofFleet,
  'fleet.key:flush-directory': ofFleet,
  'fleet.key:rename': ofFleet,
  'fleet.key:write': ofFleet,
  'fleet.outcomes:discard': ofFleet,
  'fleet.outcomes:flush-directory': ofFleet,
  'fleet.outcomes:rename': ofFleet,
  'fleet.outcomes:write': ofFleet,
  'partial.note:discard': ofNotes,
  'partial.note:rename': ofNotes,
  'partial.note:write': ofNotes,
  'flush.record-older:rename': afterSecondCrash,
  'flush.record-older:flush-to': afterSecondCrash,
  'flush.record-older:flush-from': afterSecondCrash,
  'recover.keep-broken:discard': sameLines,
  'recover.keep-broken:flush-from': sameDirectory,
  'refusals:discard': sameLines,
  'reserve.place:flush-from': sameDirectory,
  'state-mark.copy:discard': sameLines,
  'state-mark.write:discard': sameLines,
  'status:discard': sameLines,
  'trust.clock-floor:discard': sameLines,
  'trust.delegated:discard': sameLines,
  'trust.floors:discard': sameLines,
  'trust.floors-forget': ofPersons,
  'trust.delegated-room': largeDelegations,
  'trust.delegated-room:flush-directory': largeDelegations,
  'trust.root-history:discard': sameLines,
  'trust.root:discard': sameLines,
  'trust.snapshot:discard': sameLines,
  'trust.targets:discard': sameLines,
  // Without its directory a retained release has no archive either, so a start cannot rebuild it.
  'repair.record-bundle': prepared,
  'repair.record-directory': prepared,
  'trust.directory': prepared,
};

interface PlannedCase {
  readonly cycle: string;
  readonly one: MatrixCase;
}

function allOf(plan: ReadonlyMap<string, readonly MatrixCase[]>): PlannedCase[] {
  return [...plan].flatMap(([cycle, cases]) => cases.map((one) => ({ cycle, one })));
}

describe('the crash matrix', () => {
  const moments = new Map<string, readonly Moment[]>();
  let pool: MatrixPool;
  before(async () => {
    pool = openPool();
    await pool.each(matrixCycles, async ({ name }, order) => {
      moments.set(name, (await order([])).moments);
    });
  });
  after(() => pool.close());

  it('has cases for every operation in the sources, or a reason for none', () => {
    const covered = new Set([...moments.values()].flat().map((one) => one.label));
    const known = labelsInSources(sources);
    const missing = [...known].filter((label) => !covered.has(label)).sort();
    assert.deepEqual(missing, Object.keys(exceptions).sort());
    const unknown = [...covered].filter((label) => !known.has(label));
    assert.deepEqual(unknown, [], 'operation-labels reads the sources right');
  });

  it('leaves one intact policy after every kind of fault at every label', async (context) => {
    const plan = sampled(allOf(samplePlan(moments, seeded(testSeed()))));
    context.diagnostic(`${plan.length} states`);
    const violations: MatrixViolation[] = [];
    await pool.each(matrixCycles, async ({ name }, order) => {
      const cases = plan.filter(({ cycle }) => cycle === name).map(({ one }) => one);
      violations.push(...(await order(cases)).violations);
    });
    const report = violations.map((one) => `${one.cycle}: ${one.state}\n  ${one.message}`).join('\n');
    assert.equal(violations.length, 0, `seed ${testSeed()}\n${report}`);
  });
});
