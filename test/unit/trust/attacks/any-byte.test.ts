// Any single byte of any metadata file, or of the archive, changed, taken out or put in: it is refused with a code, or
// what is trusted is the same as before (white space is not signed). It is never accepted as something else.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isWritError } from '../../../../src/core/errors.js';
import { trustDelegated } from '../../../../src/core/tuf/trusted-delegations.js';
import {
  type TrustedSet,
  trustFirstRoot,
  trustNextRoot,
  trustSnapshot,
  trustTargets,
  trustTimestamp,
} from '../../../../src/core/tuf/trusted-set.js';
import { caseSeed, type Seeded, seeded, testSeed } from '../../../kit/assert/seeded.js';
import { simulatedSource } from '../../../kit/repository/simulated-source.js';
import { targetBytes } from '../../../kit/trust/target-bytes.js';
import { trustHost } from '../../../kit/trust/trust-host.js';
import {
  type ForeignRepositoryOptions,
  foreignKey,
  foreignRelease,
  foreignRepository,
} from '../../../kit/trust/tuf-js-repository.js';

const nowMs = Date.UTC(2026, 10, 1);
const archive = Buffer.from('an archive, '.repeat(40));
const targetPath = 'dns/stable.tar.br';

const key = (name: string) => [foreignKey('ed25519', `any byte: ${name}`)];
const options: ForeignRepositoryOptions = {
  nowMs,
  keys: {
    root: key('root'),
    timestamp: key('timestamp'),
    snapshot: key('snapshot'),
    targets: key('targets'),
  },
  delegations: [
    { name: 'team', keys: key('team'), paths: ['dns/*'], targets: foreignRelease('dns', archive, nowMs) },
  ],
};
const first = foreignRepository(options);
const second = foreignRepository({ ...options, version: 2 });
const files = new Map([...second.files, ['metadata/1.root.json', first.bootstrapRoot]]);

function file(name: string): Buffer {
  const bytes = files.get(`metadata/${name}`);
  assert.ok(bytes, name);
  return bytes;
}

interface Step {
  readonly name: string;
  /** Judges the bytes as the client does at this place of the workflow. @returns what is trusted because of them */
  judge(bytes: Buffer): unknown;
}

/** Each file of the workflow with everything before it trusted. */
function steps(): Step[] {
  const root = trustFirstRoot(file('1.root.json'));
  const rooted = trustNextRoot(root, file('2.root.json'));
  const timed = trustTimestamp(rooted, file('timestamp.json'), nowMs);
  const snapped = trustSnapshot(timed, file('2.snapshot.json'), nowMs);
  const whole = trustTargets(snapped, file('2.targets.json'), nowMs);
  const { targets } = whole;
  const role = targets?.signed.delegations?.roles[0];
  assert.ok(targets && role);
  const signed = (set: TrustedSet, name: 'root' | 'timestamp' | 'snapshot' | 'targets') => set[name]?.signed;
  return [
    { name: '1.root.json', judge: (bytes) => signed(trustFirstRoot(bytes), 'root') },
    { name: '2.root.json', judge: (bytes) => signed(trustNextRoot(root, bytes), 'root') },
    { name: 'timestamp.json', judge: (bytes) => signed(trustTimestamp(rooted, bytes, nowMs), 'timestamp') },
    { name: '2.snapshot.json', judge: (bytes) => signed(trustSnapshot(timed, bytes, nowMs), 'snapshot') },
    { name: '2.targets.json', judge: (bytes) => signed(trustTargets(snapped, bytes, nowMs), 'targets') },
    { name: '2.team.json', judge: (bytes) => trustDelegated(whole, targets, role, bytes, nowMs).signed },
  ];
}

/** Every kind of change at one position: two fixed ones, one drawn, a byte less, a byte more. */
function changesAt(bytes: Buffer, at: number, random: Seeded): Buffer[] {
  const replaced = [0x01, 0x80, 1 + random.int(255)].map((flip) => {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] ?? 0) ^ flip;
    return copy;
  });
  const inserted = Buffer.from([random.once(2) ? 0x20 : random.int(256)]);
  const before = bytes.subarray(0, at);
  return [
    ...replaced,
    Buffer.concat([before, bytes.subarray(at + 1)]),
    Buffer.concat([before, inserted, bytes.subarray(at)]),
  ];
}

describe('a changed byte', () => {
  const seed = testSeed();
  for (const { name, judge } of steps()) {
    it(`at any position of ${name} is refused, or changes nothing that is trusted`, () => {
      const bytes = file(name);
      const expected = JSON.stringify(judge(bytes));
      const seen = { refused: 0, harmless: 0 };
      for (const at of bytes.keys()) {
        for (const changed of changesAt(bytes, at, seeded(caseSeed(seed, at)))) {
          try {
            assert.equal(
              JSON.stringify(judge(changed)),
              expected,
              `WRIT_TEST_SEED=${seed}, ${name} at ${at}`,
            );
            seen.harmless += 1;
          } catch (error) {
            if (!isWritError(error)) throw error;
            assert.match(error.code, /^(METADATA|SIGNATURE)_/, `${name} at ${at}`);
            seen.refused += 1;
          }
        }
      }
      assert.ok(seen.refused > bytes.length * 3, JSON.stringify(seen));
      assert.ok(seen.harmless > 0, 'white space and names beside the signed part are nobody’s business');
    });
  }

  it('is refused by a refresh and download, or the result is the same', async () => {
    const place = [...files.keys()].find((path) => path.startsWith('targets/')) ?? '';
    const served = new Map(files);
    const download = async (): Promise<Buffer> => {
      using host = trustHost(first.bootstrapRoot, nowMs);
      const client = host.boot(simulatedSource(served, []));
      await client.refresh();
      return await targetBytes(client, targetPath);
    };
    assert.deepEqual(await download(), archive);
    const seen = new Map<string, number>();
    for (let index = 0; index < 60; index += 1) {
      const random = seeded(caseSeed(seed, index));
      const path = random.once(3)
        ? place
        : random.pick([...files.keys()].filter((name) => !name.endsWith('1.root.json')));
      const bytes = files.get(path) ?? Buffer.alloc(0);
      const at = random.int(bytes.length);
      served.set(path, random.pick(changesAt(bytes, at, random)));
      using _fresh = { [Symbol.dispose]: () => served.set(path, bytes) };
      const outcome = await new Promise<string>((resolve, reject) => {
        download().then(
          (got) => resolve(got.equals(archive) ? 'same' : 'other'),
          (error: unknown) => (isWritError(error) ? resolve(error.code) : reject(error as Error)),
        );
      });
      assert.notEqual(outcome, 'other', `WRIT_TEST_SEED=${seed}, ${path} at ${at}`);
      assert.notEqual(outcome, 'INTERNAL');
      seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
    }
    assert.ok((seen.get('DOWNLOAD_DIGEST') ?? 0) > 0 && seen.size > 3, [...seen.keys()].join());
  });
});
