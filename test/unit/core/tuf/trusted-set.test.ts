import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { isWritError } from '../../../../src/core/errors.js';
import {
  recallFiles,
  requireFreshTimestamp,
  type TrustedSet,
  trustFirstRoot,
  trustNextRoot,
  trustSnapshot,
  trustTargets,
  trustTimestamp,
} from '../../../../src/core/tuf/trusted-set.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { RepositorySimulator } from '../../../kit/repository/repository-simulator.js';

const nowMs = Date.UTC(2026, 10, 1);
const repository = new RepositorySimulator({ nowMs });
const archive = Buffer.from('archive');
repository.publishRelease({ bundle: 'dns', channel: 'stable' }, archive);
repository.rotate('root');

const files = {
  root: repository.file('2.root.json'),
  timestamp: repository.file('timestamp.json'),
  snapshot: repository.file('2.snapshot.json'),
  targets: repository.file('2.targets.json'),
};

/** The whole workflow over bytes; what it ends with is what an agent would act on. */
function follow(given: typeof files): TrustedSet {
  let set = trustNextRoot(trustFirstRoot(repository.bootstrapRoot), given.root);
  set = trustTimestamp(set, given.timestamp, nowMs);
  set = trustSnapshot(set, given.snapshot, nowMs);
  return trustTargets(set, given.targets, nowMs);
}

function meaning(set: TrustedSet): string {
  return JSON.stringify([set.root, set.timestamp, set.snapshot, set.targets].map((file) => file?.signed));
}

describe('trusted set', () => {
  it('rejects any change of a byte, unless it changes no content that is used', () => {
    const expected = meaning(follow(files));
    const roles = fc.constantFrom('root', 'timestamp', 'snapshot', 'targets');
    fc.assert(
      fc.property(
        roles as fc.Arbitrary<keyof typeof files>,
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (role, at, flip) => {
          const bytes = Buffer.from(files[role]);
          const place = at % bytes.length;
          bytes[place] = (bytes[place] ?? 0) ^ flip;
          try {
            assert.equal(meaning(follow({ ...files, [role]: bytes })), expected);
          } catch (error) {
            if (!isWritError(error)) throw error;
            assert.notEqual(error.code, 'INTERNAL');
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it('refuses any cut of any file', () => {
    for (const role of ['root', 'timestamp', 'snapshot', 'targets'] as const) {
      for (let end = 0; end < files[role].length; end += 37) {
        throwsCode('METADATA_MALFORMED', () => follow({ ...files, [role]: files[role].subarray(0, end) }));
      }
    }
  });

  it('never changes the trusted set when it rejects a file', () => {
    const set = follow(files);
    const before = meaning(set);
    throwsCode('METADATA_MALFORMED', () => trustTimestamp(set, Buffer.from('{}'), nowMs));
    assert.equal(meaning(set), before);
    assert.equal(trustTimestamp(set, files.timestamp, nowMs), set);
  });

  it('recalls stored files whether or not they have expired, and leaves out damaged and unsigned ones', () => {
    const root = trustNextRoot(trustFirstRoot(repository.bootstrapRoot), files.root);
    const whole = recallFiles(root, files);
    assert.equal(meaning(whole), meaning(follow(files)));
    throwsCode('METADATA_EXPIRED', () => requireFreshTimestamp(whole, nowMs + 8 * 86_400_000));
    assert.equal(recallFiles(root, { ...files, targets: Buffer.from('{') }).targets, undefined);
    const stranger = new RepositorySimulator({ nowMs });
    assert.equal(recallFiles(root, { targets: stranger.file('1.targets.json') }).targets, undefined);
  });

  it('throws INTERNAL for a step in the wrong order', () => {
    const set = trustFirstRoot(repository.bootstrapRoot);
    throwsCode('INTERNAL', () => trustSnapshot(set, files.snapshot, nowMs));
    throwsCode('INTERNAL', () => trustTargets(set, files.targets, nowMs));
  });
});
