// The crash matrix as far as a build has time for it: every label has each kind of fault once, at a moment chosen by the
// seed. `npm run crash` tries every fault at every moment. An operation that no cycle comes to fails here.
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
const oneMore = 'only where a start could not remove what a crash had left, and a crash came there again';
const prepared = 'the start has made it a moment ago: only if somebody removes it while a process runs';

const confined =
  'only a root agent with bubblewrap gives scratch away: before the swap it is like hook.scratch, and goes with it';
const ofDiff = 'no part of a host: a directory of its own, that `writ diff --server` makes and removes';
const ofEvents =
  'no part of the policy: a file of events that fails changes no outcome (test/unit/agent/report/events-file)';

const roomForRoles =
  'only above a hundred megabytes of delegated roles: one that is gone is fetched again (test/unit/trust/store/delegated-files)';

const ofLayers =
  'only behind a crash amid a copy that overlayfs asks for: each step is killed in test/unit/platform/disk/durable-rename';
const ofNotes =
  'no part of the policy: only a web server names a version, and a note that is lost costs one header (test/unit/agent/staging/resume-crashes)';

const ofIdentity =
  'no part of the policy: an id that cannot be kept is of one process (test/unit/agent/identity/install-id)';
const ofCheck =
  'no part of a host: a scratch directory of one writ check, beside no state (test/scenario/cli/commands/check)';
const ofFleet =
  'no part of the policy: killed at each of them in test/unit/agent/fleet/host-state, and no cycle comes by';

const ofPersons =
  'only where a person moved the trust store away: floors that stay are of the same repository (test/scenario/start/trust-floors)';

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
  'recover.sweep-copy': ofLayers,
  'recover.sweep-moved': ofLayers,
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
  'flush.record-older:rename': oneMore,
  'flush.record-older:flush-to': oneMore,
  'flush.record-older:flush-from': oneMore,
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
  'trust.delegated-room': roomForRoles,
  'trust.delegated-room:flush-directory': roomForRoles,
  'trust.root-history:discard': sameLines,
  'trust.root:discard': sameLines,
  'trust.snapshot:discard': sameLines,
  'trust.targets:discard': sameLines,
  // Without its directory a kept release has no archive either, which a start cannot have again.
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

  it('has cases for every operation that the sources can make, or says why not', () => {
    const covered = new Set([...moments.values()].flat().map((one) => one.label));
    const known = labelsInSources(sources);
    const missing = [...known].filter((label) => !covered.has(label)).sort();
    assert.deepEqual(missing, Object.keys(exceptions).sort());
    const unknown = [...covered].filter((label) => !known.has(label));
    assert.deepEqual(unknown, [], 'operation-labels reads the sources right');
  });

  it('leaves one whole policy for every kind of fault at every label', async (context) => {
    const plan = sampled(allOf(samplePlan(moments, seeded(testSeed()))));
    context.diagnostic(`${plan.length} states`);
    const violations: MatrixViolation[] = [];
    await pool.each(matrixCycles, async ({ name }, order) => {
      const cases = plan.filter(({ cycle }) => cycle === name).map(({ one }) => one);
      violations.push(...(await order(cases)).violations);
    });
    const said = violations.map((one) => `${one.cycle}: ${one.state}\n  ${one.message}`).join('\n');
    assert.equal(violations.length, 0, `seed ${testSeed()}\n${said}`);
  });
});
