// A proposal comes by mail: what is not exactly one is refused, copies are merged only when they say the same, and the
// base must be the reader's own.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { newSeed, publicKeyOf } from '../../../../src/publisher/keys/key-file.js';
import { createSigner, metadataKey } from '../../../../src/publisher/keys/signer.js';
import {
  encodeProposal,
  isSameCode,
  mergeProposals,
  type Proposal,
  parseProposal,
  proposalCode,
  readProposal,
  trustBase,
} from '../../../../src/publisher/root/proposal-file.js';
import {
  isComplete,
  listMissingSigners,
  tallySignatures,
  validSignatures,
} from '../../../../src/publisher/root/proposal-signatures.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { commit, newKey, proposal, signedBy } from '../../../kit/repository/ceremony.js';
import { sampleRepository } from '../../../kit/repository/sample-repository.js';
import type { Loose } from '../../../kit/repository/simulated-metadata.js';

function bent(given: Proposal, change: (file: Loose) => void): Buffer {
  const file = JSON.parse(encodeProposal(given).toString());
  change(file);
  return Buffer.from(JSON.stringify(file));
}

const refused: Readonly<Record<string, (file: Loose) => void>> = {
  'another format': (file) => (file['writ-proposal'] = 2),
  'a member more': (file) => (file.note = 'please sign quickly'),
  'a member less': (file) => delete file.chain,
  'an empty chain': (file) => (file.chain = []),
  'a chain without end': (file) => (file.chain = Array(300).fill(file.chain[0])),
  'a chain of something else': (file) => (file.chain = [{ signed: 1, signatures: [] }]),
  'a base that is no digest': (file) => (file.base = 'sha256:00'),
  'a base without its kind': (file) => (file.base = file.base.replace('sha256:', '')),
  'a base that is no text': (file) => (file.base = { toString: 'x' }),
  'no root': (file) => (file.root = null),
  'another role': (file) => (file.root.signed._type = 'targets'),
  'a member beside signed': (file) => (file.root.note = 'x'),
  'a member in a signature': (file) => (file.root.signatures = [{ keyid: 'a', sig: 'b', note: 'x' }]),
  'signatures without end': (file) =>
    (file.root.signatures = Array.from({ length: 101 }, (_, index) => ({ keyid: `${index}`, sig: '' }))),
  'a key that signs twice': (file) =>
    (file.root.signatures = [
      { keyid: 'a', sig: '' },
      { keyid: 'a', sig: '' },
    ]),
  'an expiry that is no time': (file) => (file.root.signed.expires = 'never'),
};

describe('a proposal', () => {
  it('comes back from its file as it was', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const signed = await signedBy(repository, proposal(repository, {}), ['root-1.key']);
    const again = parseProposal(encodeProposal(signed));
    assert.deepEqual(again.root.signedBytes, signed.root.signedBytes);
    assert.deepEqual(again.root.signatures, signed.root.signatures);
    assert.equal(again.baseDigest, signed.baseDigest);
  });

  for (const [name, change] of Object.entries(refused)) {
    it(`is refused: ${name}`, () => {
      using dir = tempDir();
      const made = proposal(sampleRepository(dir), {}).proposal;
      throwsCode('PROPOSAL_MALFORMED', () => parseProposal(bent(made, change)));
    });
  }

  it('is refused where it is not JSON, has a member twice, is missing, is a FIFO or too long', () => {
    using dir = tempDir();
    const made = encodeProposal(proposal(sampleRepository(dir), {}).proposal).toString();
    for (const text of ['', '[]', made.replace('{', '{"root":{},')]) {
      throwsCode('PROPOSAL_MALFORMED', () => parseProposal(Buffer.from(text)));
    }
    execFileSync('mkfifo', [dir.join('fifo')]);
    writeFileSync(dir.join('long'), Buffer.alloc(4_000_001));
    for (const name of ['missing', 'fifo', 'long', '.']) {
      throwsCode('PROPOSAL_MALFORMED', () => readProposal(dir.join(name)));
    }
  });

  it('is named as missing, not as damaged, when no file has its name', () => {
    using dir = tempDir();
    const error = throwsCode('PROPOSAL_MALFORMED', () => readProposal(dir.join('from-anna')));
    assert.equal(error.message, `there is no file ${dir.join('from-anna')}`);
    assert.match(error.hint ?? '', /Check the path/);
  });
});

describe('the code of a proposal', () => {
  it('is the same with any signatures, another for any other content, and forgives how it is typed', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const made = proposal(repository, {});
    const code = proposalCode(made.proposal);
    assert.match(code, /^[0-9a-f]{4}(?:-[0-9a-f]{4}){3}$/);
    assert.equal(proposalCode(await signedBy(repository, made, ['root-1.key'])), code);
    assert.notEqual(proposalCode(proposal(repository, { validity: { root: 1000 } }).proposal), code);
    assert.ok(isSameCode(code, ` ${code.toUpperCase().replaceAll('-', ' ')}`));
    for (const other of ['', code.slice(0, 9), `${code}0`, code.replace(/.$/, 'x')]) {
      assert.ok(!isSameCode(code, other));
    }
  });
});

describe('copies of a proposal', () => {
  it('that people signed side by side are put together', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const made = proposal(repository, {});
    const [one, two] = await Promise.all([
      signedBy(repository, made, ['root-1.key']),
      signedBy(repository, made, ['root-3.key']),
    ]);
    assert.ok(one !== undefined && two !== undefined);
    const merged = { base: made.base, proposal: mergeProposals([one, two, one]) };
    assert.ok(isComplete(tallySignatures(merged)));
    assert.equal(validSignatures(merged).length, 2);
  });

  it('that differ are none', () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const one = proposal(repository, {}).proposal;
    const two = proposal(repository, { validity: { root: 1000 } }).proposal;
    throwsCode('PROPOSAL_CODE', () => mergeProposals([one, two]));
  });

  it('are not hurt by a broken signature in another copy', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const made = proposal(repository, {});
    const good = await signedBy(repository, made, ['root-1.key']);
    const bad = parseProposal(bent(good, (file) => (file.root.signatures[0].sig = '00'.repeat(64))));
    for (const merged of [mergeProposals([bad, good]), mergeProposals([good, bad])]) {
      assert.equal(validSignatures({ base: made.base, proposal: merged }).length, 1);
    }
  });
});

describe('a signature of a proposal', () => {
  it('counts once for each key', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const made = proposal(repository, {});
    const { root, ...rest } = await signedBy(repository, made, ['root-1.key']);
    const twice = { ...rest, root: { ...root, signatures: [...root.signatures, ...root.signatures] } };
    assert.equal(validSignatures({ base: made.base, proposal: twice }).length, 1);
  });

  it('does not count when the proposed root has another key under the key id', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const made = proposal(repository, {});
    const stranger = newSeed();
    const forged = parseProposal(
      bent(made.proposal, ({ root: { signed } }) => {
        const [id = ''] = signed.roles.root.keyids;
        signed.keys[id] = metadataKey(publicKeyOf(stranger));
      }),
    );
    const [keyid = ''] = forged.root.signed.roles.root.keyids;
    const sig = createSigner(stranger).sign(forged.root.signedBytes);
    const signatures = [{ keyid, sig: (await sig).sig }];
    const proposed = { ...forged, root: { ...forged.root, signatures } };
    assert.deepEqual(validSignatures({ base: made.base, proposal: proposed }), []);
  });
});

describe('the missing signers of a proposal', () => {
  const people = (names: string) => [...names].map((name) => ({ keyId: name.toLowerCase(), name }));
  const tally = (signed: string, missing: string) => ({
    ...{ threshold: 2, keys: signed.length + missing.length },
    ...{ signed: people(signed), missing: people(missing) },
  });

  it('is complete only where both roots have their threshold', () => {
    const [whole, half] = [tally('ab', 'c'), tally('a', 'bc')];
    assert.equal(isComplete({ old: whole, next: whole }), true);
    assert.equal(isComplete({ old: whole, next: half }), false);
    assert.equal(isComplete({ old: half, next: whole }), false);
  });

  it('is named for each root where too few people count for both', () => {
    const missing = listMissingSigners({ old: tally('', 'ab'), next: tally('', 'bc') });
    assert.deepEqual(
      missing.map(({ count, of }) => [count, of.map(({ name }) => name).join('')]),
      [
        [2, 'ab'],
        [2, 'bc'],
      ],
    );
  });

  it('is named for the old and the new root, once where one person counts for both', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const carol = newKey(dir, 'carol');
    const made = proposal(repository, {
      remove: [{ role: 'root', which: 'root-3' }],
      add: [{ role: 'root', key: carol }],
    });
    const names = (given: Proposal): unknown =>
      listMissingSigners(tallySignatures({ base: made.base, proposal: given })).map(({ count, of }) => [
        count,
        of.map(({ name }) => name),
      ]);
    assert.deepEqual(names(made.proposal), [[2, ['root-1', 'root-2']]]);
    assert.deepEqual(names(await signedBy(repository, made, ['carol.key'])), [[2, ['root-1', 'root-2']]]);
    assert.deepEqual(names(await signedBy(repository, made, ['root-3.key', 'root-1.key'])), [
      [1, ['root-2', 'carol']],
    ]);
    assert.deepEqual(names(await signedBy(repository, made, ['root-2.key', 'root-1.key'])), []);
  });
});

describe('the base of a proposal', () => {
  it('is reached by its chain from any root that the reader has', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const first = readFileSync(repository.rootPath);
    for (const version of [1, 2, 3]) {
      const made = proposal(repository, {});
      assert.equal(made.base.signed.version, version);
      const base = trustBase(parseProposal(encodeProposal(made.proposal)), first);
      assert.deepEqual(base.signedBytes, made.base.signedBytes);
      await commit(repository, await signedBy(repository, made, ['root-1.key', 'root-2.key']));
    }
  });

  it('of another repository is refused', () => {
    using dir = tempDir();
    using other = tempDir();
    const stranger = readFileSync(sampleRepository(other, { signers: 'own' }).rootPath);
    const made = proposal(sampleRepository(dir), {}).proposal;
    throwsCode('PROPOSAL_BASE', () => trustBase(made, stranger));
  });

  it('that is older than the root of the reader, or has a forged chain, is refused', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const first = readFileSync(repository.rootPath);
    const old = proposal(repository, {});
    const signed = await signedBy(repository, old, ['root-1.key', 'root-2.key']);
    await commit(repository, signed);
    throwsCode('PROPOSAL_BASE', () => trustBase(old.proposal, signed.root.bytes));
    const next = proposal(repository, {}).proposal;
    const forged = parseProposal(bent(next, (file) => (file.chain[1].signatures.length = 1)));
    throwsCode('PROPOSAL_BASE', () => trustBase(forged, first));
  });
});
