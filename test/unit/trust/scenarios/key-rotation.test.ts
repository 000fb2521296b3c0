// New keys for timestamp, snapshot and targets: a file counts if the root of the moment lists its signers, and not
// a moment longer. Keys are letters; `abc/2 by ab` lists a, b and c with threshold 2, and a and b sign.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeKey, type SimulatedKey } from '../../../kit/repository/repository-simulator.js';
import { type TrustBench, trustBench } from '../../../kit/trust/trust-bench.js';

const roles = ['timestamp', 'snapshot', 'targets'] as const;
type Role = (typeof roles)[number];

const accepted = [
  ['another key', 'b/1 by b'],
  ['the same key among strangers', 'a/1 by xay'],
  ['three of five', 'abcde/3 by ace'],
  ['another three of five', 'abcde/3 by aeb'],
  ['a third three of five', 'abcde/3 by abd'],
  ['without the first', 'abcde/3 by bcd'],
  ['the last three', 'abcde/3 by cde'],
  ['all of five', 'abcde/3 by edcba'],
] as const;

const refused = [
  ['only the old key and strangers signed', 'b/1 by axy', 'SIGNATURE_WRONG_KEY'],
  ['one of three signers is not listed any more', 'abdef/3 by ace', 'SIGNATURE_THRESHOLD'],
  ['a signature is missing', 'abdef/3 by ae', 'SIGNATURE_THRESHOLD'],
  ['there are fewer keys than the threshold asks for', 'ab/3 by ab', 'SIGNATURE_THRESHOLD'],
] as const;

/** Where the refresh ends when a role is refused: what is stored of the new publish by then. */
const storedUpTo: Readonly<Record<Role, Record<string, number>>> = {
  timestamp: { root: 2, snapshot: 1, targets: 1, timestamp: 1 },
  snapshot: { root: 2, snapshot: 1, targets: 1, timestamp: 2 },
  targets: { root: 2, snapshot: 2, targets: 1, timestamp: 2 },
};

for (const role of roles) {
  describe(`new keys of ${role}`, () => {
    for (const [name, text] of accepted) {
      it(`are followed: ${name} (${text})`, async () => {
        using bench = await benchWithKeys(role, text);
        assert.equal(await bench.refresh(), 'trusted');
        assert.deepEqual(bench.stored(), { root: 2, snapshot: 2, targets: 2, timestamp: 2 });
        assert.deepEqual(bench.storedBytes(role), bench.repository.file(bench.repository.nameOf(role)));
      });
    }

    for (const [name, text, code] of refused) {
      it(`are refused when ${name} (${text})`, async () => {
        using bench = await benchWithKeys(role, text);
        assert.equal(await bench.refresh(), code);
        assert.equal(bench.refusal?.facts['role'], role);
        assert.deepEqual(bench.stored(), storedUpTo[role]);
      });
    }

    it('make the host fetch again what only the old key had signed', async () => {
      using bench = trustBench();
      await bench.refresh();
      bench.asked();
      bench.repository.rotate(role);
      bench.repository.writeTargets();
      assert.equal(await bench.refresh(), 'trusted');
      const asked = bench.asked();
      assert.deepEqual(asked.slice(0, 2), ['2.root.json', '3.root.json']);
      assert.equal(asked.includes(role === 'timestamp' ? 'timestamp.json' : `1.${role}.json`), true);
      assert.deepEqual(bench.storedBytes(role), bench.repository.file(bench.repository.nameOf(role)));
    });
  });
}

const keysByLetter = new Map<string, SimulatedKey>();

function keysOf(letters: string): SimulatedKey[] {
  return [...letters].map((letter) => {
    const key = keysByLetter.get(letter) ?? makeKey();
    keysByLetter.set(letter, key);
    return key;
  });
}

/** A host that trusts a publish under key a, and a server with the next one under other keys. */
async function benchWithKeys(role: Role, text: string): Promise<TrustBench> {
  const bench = trustBench();
  const { repository } = bench;
  repository.setKeys(role, keysOf('a'), 1);
  repository.writeRoot();
  repository.writeTargets();
  bench.restart({ trustedRoot: repository.bootstrapRoot });
  assert.equal(await bench.refresh(), 'trusted');
  const [, listed = '', threshold = '', signers = ''] = /^(\w+)\/(\d) by (\w+)$/.exec(text) ?? [];
  repository.setKeys(role, keysOf(listed), Number(threshold));
  repository.signers.set(role, keysOf(signers));
  repository.bumpRoot();
  repository.publish();
  return bench;
}
