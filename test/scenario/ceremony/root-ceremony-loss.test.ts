// Ceremonies for a key that was lost or stolen, from the first command to the host that follows.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { founded, hostOf, isGolden, json, mail, publish, rootOn, writ } from './ceremony-by-mail.js';

describe('a lost key', longCase, () => {
  it('is replaced by the two who still have theirs', async () => {
    using dir = tempDir();
    await founded(dir);
    fs.rmSync(dir.join('carol', 'carol.key'));
    await writ(dir, 'carol', 'key', 'new', 'new.key', '--name', 'carol', '--no-passphrase');
    mail(dir, 'new.pub', 'carol', 'anna');
    // The old key of the same name leaves in the same step.
    const both = await json(dir, 'anna', 'root', 'add-key', 'new.pub', '--repository', '../repo');
    assert.equal(both['code'], 'ROOT_CHANGE_REFUSED');
    const change = ['--remove', 'carol', '--add', 'new.pub'];
    const made = await json(dir, 'anna', 'root', 'rotate', '--repository', '../repo', ...change);
    const confirm = ['--confirm', String(made['code'])];
    mail(dir, 'root-2.proposal', 'anna', 'ben');
    for (const who of ['anna', 'ben']) {
      await writ(dir, who, 'sign', 'root-2.proposal', '--key', `${who}.key`, ...confirm);
    }
    mail(dir, 'root-2.proposal', 'ben', 'anna', 'from-ben');
    const files = ['root-2.proposal', 'from-ben'];
    const run = await writ(dir, 'anna', 'root', 'commit', ...files, '--repository', '../repo', ...confirm);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.equal(await rootOn(hostOf(dir)), 2);
    const gone = await json(dir, 'anna', 'root', 'remove-key', 'carol', '--repository', '../repo');
    assert.equal(gone['code'], 'ROOT_CHANGE_REFUSED', 'two of two leave no spare');
  });
});

describe('a new key of a person who keeps signing', longCase, () => {
  it('is told from the old one where a signature is missing, as both have the name of the person', async () => {
    using dir = tempDir();
    await founded(dir);
    await writ(dir, 'carol', 'key', 'new', 'new.key', '--name', 'carol', '--no-passphrase');
    mail(dir, 'new.pub', 'carol', 'anna');
    const change = ['--remove', 'carol', '--add', 'new.pub'];
    const made = await json(dir, 'anna', 'root', 'rotate', '--repository', '../repo', ...change);
    const confirm = ['--confirm', String(made['code'])];
    mail(dir, 'root-2.proposal', 'anna', 'carol');
    await writ(dir, 'carol', 'sign', 'root-2.proposal', '--key', 'new.key', ...confirm);
    mail(dir, 'root-2.proposal', 'carol', 'ben');
    await writ(dir, 'ben', 'sign', 'root-2.proposal', '--key', 'ben.key', ...confirm);
    const commit = ['root', 'commit', 'root-2.proposal', '--repository', '../repo', ...confirm];
    const early = await json(dir, 'ben', ...commit);
    assert.equal(early['code'], 'SIGNATURE_THRESHOLD');
    assert.match(String(early['message']), /1 of anna, carol \([0-9a-f]{8}\)/);
    const both = ['--key', 'carol.key', '--key', 'new.key', ...confirm];
    mail(dir, 'root-2.proposal', 'ben', 'carol');
    assert.equal((await json(dir, 'carol', 'sign', 'root-2.proposal', ...both))['complete'], true);
  });
});

describe('a stolen online key', longCase, () => {
  it('is replaced; hosts refuse what the thief signs, and the server goes on with the new ones', async () => {
    using dir = tempDir();
    await founded(dir);
    const host = hostOf(dir);
    await host.refresh();
    const live = dir.join('repo', 'metadata', 'timestamp.json');
    const replayed = fs.readFileSync(live);
    for (const role of ['snapshot', 'timestamp']) {
      await writ(dir, 'server', 'key', 'new', `keys/${role}.key`, '--name', 'server', '--no-passphrase');
      mail(dir, `keys/${role}.pub`, 'server', 'anna', `${role}.pub`);
    }
    const change = ['--replace', 'timestamp=timestamp.pub', '--replace', 'snapshot=snapshot.pub'];
    const made = await json(dir, 'anna', 'root', 'rotate', '--repository', '../repo', ...change);
    const confirm = ['--confirm', String(made['code'])];
    await writ(dir, 'anna', 'sign', 'root-2.proposal', '--key', 'anna.key', ...confirm);
    mail(dir, 'root-2.proposal', 'anna', 'ben');
    await writ(dir, 'ben', 'sign', 'root-2.proposal', '--key', 'ben.key', ...confirm);
    const commit = ['root', 'commit', 'root-2.proposal', '--repository', '../repo', ...confirm];
    const unsaid = await json(dir, 'ben', ...commit, '--keys', '.');
    assert.deepEqual([unsaid['exitCode'], unsaid['code']], [1, 'KEYS_MISSING']);
    const left = await writ(dir, 'ben', ...commit, '--keys', '.', '--leave-unsigned');
    isGolden('left-unsigned', left);
    await rejectsCode('SIGNATURE_WRONG_KEY', host.refresh({ conditional: 'no' }));
    const status = await json(dir, 'ben', 'repo', 'status', '--repository', '../repo');
    assert.deepEqual([status['outcome'], status['exitCode']], ['critical', 2]);
    const refresh = ['refresh', '--repository', '../repo', '--keys', 'keys'];
    const run = await writ(dir, 'server', ...refresh);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.equal(await rootOn(host), 2);
    fs.writeFileSync(live, replayed);
    await rejectsCode('SIGNATURE_WRONG_KEY', host.refresh({ conditional: 'no' }));
    const thief = await json(dir, 'founder', 'refresh', '--repository', '../repo', '--keys', 'keys');
    assert.deepEqual([thief['exitCode'], thief['code']], [1, 'KEYS_MISSING']);
    assert.equal((await writ(dir, 'server', ...refresh)).exitCode, 0);
    assert.equal(await rootOn(host), 2);
  });
});

describe('a stolen targets key', longCase, () => {
  it('is replaced after a person has seen what the new key signs; the old one publishes nothing more', async () => {
    using dir = tempDir();
    await founded(dir);
    const host = hostOf(dir);
    await host.refresh();
    const places = ['--repository', '../repo'];
    await writ(dir, 'founder', 'key', 'new', 'keys/targets-2.key', '--name', 'publisher', '--no-passphrase');
    mail(dir, 'keys/targets-2.pub', 'founder', 'anna', 'targets-2.pub');
    const change = ['--replace', 'targets=targets-2.pub'];
    const made = await json(dir, 'anna', 'root', 'rotate', ...places, ...change);
    const confirm = ['--confirm', String(made['code'])];
    await writ(dir, 'anna', 'sign', 'root-2.proposal', '--key', 'anna.key', ...confirm);
    mail(dir, 'root-2.proposal', 'anna', 'ben');
    await writ(dir, 'ben', 'sign', 'root-2.proposal', '--key', 'ben.key', ...confirm);
    mail(dir, 'root-2.proposal', 'ben', 'founder');
    const commit = ['root', 'commit', 'root-2.proposal', ...places, '--keys', 'keys', ...confirm];
    const run = await writ(dir, 'founder', ...commit);
    assert.match(run.stdout, /new keys sign targets, snapshot, timestamp\n.*dns-edge stable serial 1 /);
    assert.match(run.stdout, /signed by the new keys: targets v3, snapshot v3, timestamp v3/);
    assert.equal(await rootOn(host), 2);
    assert.equal((await host.target('dns-edge', 'stable'))?.release.serial, 1);
    fs.mkdirSync(dir.join('mallory', 'keys'));
    for (const name of ['targets.key', 'snapshot.key', 'timestamp.key']) {
      mail(dir, `keys/${name}`, 'founder', 'mallory', `keys/${name}`);
    }
    writeTree(dir.join('mallory', 'source'), { 'block.rpz': 'evil' });
    const evil = ['publish', 'source', ...places, '--keys', 'keys', '--bundle', 'dns-edge'];
    assert.equal((await json(dir, 'mallory', ...evil))['code'], 'KEYS_MISSING');
    await publish(dir, 'two');
    await host.refresh();
    assert.equal((await host.target('dns-edge', 'stable'))?.release.serial, 2);
  });
});
