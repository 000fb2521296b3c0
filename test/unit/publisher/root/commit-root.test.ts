// A committed root as hosts see it: they follow, new keys count at once and old ones no more, and neither a crash, a
// missing key nor a sleeping repository leaves them without a way on.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { encodeMetadata } from '../../../../src/publisher/keys/signer.js';
import { encodeProposal, parseProposal } from '../../../../src/publisher/root/proposal-file.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import {
  commit,
  keysAt,
  newKey,
  proposal,
  rootVersions,
  signedBy,
} from '../../../kit/repository/ceremony.js';
import {
  both,
  complete,
  dayMs,
  hostOf,
  replacing,
  versionsOf,
} from '../../../kit/repository/committed-root.js';
import { live } from '../../../kit/repository/delegating.js';
import {
  metadataPath,
  type SampleRepository,
  sampleRepository,
  someKeys,
} from '../../../kit/repository/sample-repository.js';

function metadataState({ directory }: SampleRepository): unknown {
  return directoryState(`${directory}/metadata`);
}

describe('a committed root', () => {
  it(
    'that changes root keys alone leaves every other file as it is, and hosts follow',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      await repository.publish({ a: 'a' });
      const host = hostOf(repository);
      await host.refresh();
      const before = fs.readFileSync(metadataPath(repository, 'timestamp.json'));
      const carol = newKey(dir, 'carol');
      const change = {
        remove: [{ role: 'root' as const, which: 'root-3' }],
        add: [{ role: 'root' as const, key: carol }],
      };
      const result = await commit(repository, await complete(repository, change));
      assert.deepEqual([result.kind, result.signed, result.waiting], ['committed', {}, []]);
      assert.deepEqual(fs.readFileSync(metadataPath(repository, 'timestamp.json')), before);
      assert.deepEqual(
        fs.readFileSync(`${repository.keys}/root.json`),
        fs.readFileSync(metadataPath(repository, '2.root.json')),
      );
      assert.equal((await versionsOf(host))['root'], 2);
      // The new person can sign the next one, and the one who left cannot.
      const next = proposal(repository, {});
      await rejectsCode('KEYS_MISSING', signedBy(repository, next, ['root-3.key']));
      await commit(repository, await signedBy(repository, next, ['carol.key', 'root-1.key']));
      assert.equal((await versionsOf(host))['root'], 3);
    },
  );

  it(
    'with a new timestamp key is signed by it in the same step; a replayed old timestamp is refused',
    longCase,
    async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir);
      await repository.publish({ a: 'a' });
      const host = hostOf(repository);
      await host.refresh();
      const stolen = fs.readFileSync(metadataPath(repository, 'timestamp.json'));
      const change = { replace: [replacing(dir, 'timestamp')] };
      const result = await commit(repository, await complete(repository, change));
      assert.deepEqual(result.signed, { timestamp: 3 });
      assert.deepEqual(await versionsOf(host), { root: 2, timestamp: 3, snapshot: 2, targets: 2 });
      assert.deepEqual(await versionsOf(hostOf(repository)), {
        root: 2,
        timestamp: 3,
        snapshot: 2,
        targets: 2,
      });
      fs.writeFileSync(metadataPath(repository, 'timestamp.json'), stolen);
      for (const one of [host, hostOf(repository)]) {
        await rejectsCode('SIGNATURE_WRONG_KEY', one.refresh({ conditional: 'no' }));
      }
    },
  );

  it('with new keys of every role keeps the same releases', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const host = hostOf(repository);
    await host.refresh();
    const replace = (['targets', 'snapshot', 'timestamp'] as const).map((role) => replacing(dir, role));
    const { signed } = await commit(repository, await complete(repository, { replace }));
    assert.deepEqual(signed, { targets: 3, snapshot: 1003, timestamp: 3 });
    for (const name of ['targets.key', 'snapshot.key', 'timestamp.key'])
      fs.rmSync(`${repository.keys}/${name}`);
    await host.refresh();
    assert.equal((await host.target('dns-edge', 'stable'))?.release.serial, 1);
    const published = await repository.publish({ a: 'b' });
    assert.equal(published.kind, 'live');
    await host.refresh();
    assert.equal((await host.target('dns-edge', 'stable'))?.release.serial, 2);
  });

  it('may be committed again: nothing is written', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const signed = await complete(repository, { replace: [replacing(dir, 'timestamp')] });
    await commit(repository, signed);
    const before = metadataState(repository);
    assert.equal((await commit(repository, signed)).kind, 'unchanged');
    assert.deepEqual(metadataState(repository), before);
  });
});

describe('new keys that are elsewhere', () => {
  it('prevent the commit without the flag; with it their holder publishes the repository again', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const host = hostOf(repository);
    await host.refresh();
    const replace = [replacing(dir, 'snapshot', 'server'), replacing(dir, 'timestamp', 'server')];
    const signed = await complete(repository, { replace });
    const before = metadataState(repository);
    const error = await rejectsCode('KEYS_MISSING', commit(repository, signed));
    assert.deepEqual(error.facts['roles'], ['snapshot', 'timestamp']);
    assert.deepEqual(metadataState(repository), before);
    const result = await commit(repository, signed, { unsignedRoles: 'accepted' });
    assert.deepEqual(result.waiting, ['snapshot', 'timestamp']);
    await rejectsCode('SIGNATURE_WRONG_KEY', host.refresh({ conditional: 'no' }));
    // As the server's machine does it: its two keys, and the root that it had.
    for (const name of ['snapshot.key', 'timestamp.key']) fs.rmSync(`${repository.keys}/${name}`);
    fs.cpSync(dir.join('server'), repository.keys, { recursive: true });
    await repository.refresh(['timestamp']);
    assert.deepEqual(await versionsOf(host), { root: 2, timestamp: 2, snapshot: 1002, targets: 1 });
  });

  it('of targets stop publishing, too, until the commit is run again with them', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const signed = await complete(repository, { replace: [replacing(dir, 'targets', 'anna')] });
    const result = await commit(repository, signed, { unsignedRoles: 'accepted' });
    assert.deepEqual(result.waiting, ['targets', 'snapshot', 'timestamp']);
    // Built on targets of a key that was taken away, a release would launder what a thief signed.
    const refused = await rejectsCode('REPOSITORY_INVALID', repository.publish({ a: 'b' }));
    assert.match(refused.hint, /`writ root commit` .* again and with the new targets key/);
    await rejectsCode('REPOSITORY_INVALID', repository.refresh());
    fs.cpSync(dir.join('anna'), repository.keys, { recursive: true });
    const again = await commit(repository, signed);
    assert.deepEqual([again.kind, again.signed], ['completed', { targets: 3, snapshot: 3, timestamp: 3 }]);
    assert.deepEqual(await versionsOf(hostOf(repository)), {
      root: 2,
      timestamp: 3,
      snapshot: 3,
      targets: 3,
    });
  });

  it('of the server wait for it while the targets are signed already', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const replace = [replacing(dir, 'targets'), replacing(dir, 'timestamp', 'server')];
    const result = await commit(repository, await complete(repository, { replace }), {
      unsignedRoles: 'accepted',
    });
    assert.deepEqual([result.signed, result.waiting], [{ targets: 2 }, ['snapshot', 'timestamp']]);
    fs.cpSync(dir.join('server'), repository.keys, { recursive: true });
    await repository.refresh();
    assert.deepEqual(await versionsOf(hostOf(repository)), {
      root: 2,
      timestamp: 2,
      snapshot: 1002,
      targets: 2,
    });
  });
});

describe('waiting targets of a replaced targets key', () => {
  const change = (dir: TempDir) => ({ replace: [replacing(dir, 'targets')] });

  it('are not published with the root that replaces the key', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    await repository.publish({ a: 'a' });
    const keys = someKeys(dir, repository, 'targets.key', 'root.json');
    await repository.publish({ a: 'of a thief' }, { keys });
    const { signed } = await commit(repository, await complete(repository, change(dir)));
    assert.deepEqual(signed, { targets: 4, snapshot: 3, timestamp: 3 });
    assert.deepEqual(live(repository), ['dns-edge 1 targets']);
  });

  it('are published where the operator includes them', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const keys = someKeys(dir, repository, 'targets.key', 'root.json');
    await repository.publish({ a: 'a' }, { keys });
    await commit(repository, await complete(repository, change(dir)), { shouldIncludeWaiting: true });
    assert.deepEqual(live(repository), ['dns-edge 1 targets']);
  });
});

describe('a proposal that must not become the root', () => {
  it('has too few signatures of the old root, or of the new one', longCase, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const carol = newKey(dir, 'carol');
    const add = [{ role: 'root' as const, key: carol }];
    const made = proposal(repository, { add, thresholds: { root: 3 } });
    const before = metadataState(repository);
    for (const names of [[], ['root-1.key'], ['carol.key', 'root-1.key'], both]) {
      const signed = names.length === 0 ? made.proposal : await signedBy(repository, made, names);
      await rejectsCode('SIGNATURE_THRESHOLD', commit(repository, signed));
    }
    assert.deepEqual(metadataState(repository), before);
    await commit(repository, await signedBy(repository, made, [...both, 'carol.key']));
    assert.deepEqual(rootVersions(repository), [1, 2]);
  });

  it(
    'stands on a root that the repository has left, or that the committer does not trust',
    longCase,
    async () => {
      using dir = tempDir();
      using other = tempDir();
      const repository = sampleRepository(dir);
      const late = await complete(repository, { validity: { root: 10 * dayMs } });
      await commit(repository, await complete(repository, {}));
      await rejectsCode('PROPOSAL_BASE', commit(repository, late));
      await commit(repository, await complete(repository, {}));
      await rejectsCode('PROPOSAL_BASE', commit(repository, late));
      const stranger = sampleRepository(other, { signers: 'own' });
      const foreign = await complete(stranger, {});
      await rejectsCode('PROPOSAL_BASE', commit(repository, foreign));
      const next = await complete(repository, {});
      await rejectsCode('REPOSITORY_INVALID', commit(repository, next, { keys: keysAt(stranger.keys) }));
    },
  );

  it('was changed in the mail in a part that signers do not see', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const made = proposal(repository, {});
    const file = JSON.parse(encodeProposal(made.proposal).toString());
    file.root.signed['x-hidden'] = 1;
    const bent = { ...made, proposal: parseProposal(Buffer.from(JSON.stringify(file))) };
    const signed = await signedBy(repository, bent, both);
    await rejectsCode('ROOT_CHANGE_REFUSED', commit(repository, signed));
  });

  it('has expired before it was committed', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    const signed = await complete(repository, { validity: { root: dayMs } });
    await clock.advance(dayMs);
    await rejectsCode('METADATA_EXPIRED', commit(repository, signed));
  });
});

describe('signatures of strangers in a proposal', () => {
  it('never get into the repository', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    const signed = await complete(repository, {});
    const file = JSON.parse(encodeProposal(signed).toString());
    file.root.signatures.push({ keyid: 'ab'.repeat(32), sig: '00' });
    await commit(repository, parseProposal(Buffer.from(JSON.stringify(file))));
    const { signatures, signed: content } = JSON.parse(
      fs.readFileSync(metadataPath(repository, '2.root.json'), 'utf8'),
    );
    assert.equal(signatures.length, 2);
    assert.deepEqual(
      encodeMetadata({ signatures, signed: content }),
      fs.readFileSync(metadataPath(repository, '2.root.json')),
    );
  });
});
