// Root ceremonies as people hold them: each with a directory of their own, sharing nothing but mailed files and what
// is said by voice; through the command line, with hosts that follow by our own client.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { writOnTerminal } from '../../kit/cli/on-terminal.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { makeOpensslKey } from '../../kit/programs/openssl-keys.js';
import { needs } from '../../kit/programs/real-programs.js';
import { founded, hostOf, isGolden, json, mail, publish, rootOn, writ } from './ceremony-by-mail.js';

describe('three people who share only mailed files', () => {
  it('replace one of them, 2 of 3, each step as people know it; hosts follow', async () => {
    using dir = tempDir();
    await founded(dir);
    const host = hostOf(dir);
    assert.equal(await rootOn(host), 1);
    fs.mkdirSync(dir.join('dora'));
    assert.equal((await writ(dir, 'dora', 'key', 'new', 'dora.key', '--no-passphrase')).exitCode, 0);
    mail(dir, 'dora.pub', 'dora', 'anna');
    const change = ['--remove', 'carol', '--add', 'dora.pub'];
    const repository = ['--repository', '../repo'];
    isGolden('dry-run', await writ(dir, 'anna', 'root', 'rotate', ...repository, ...change, '--dry-run'));
    assert.deepEqual(fs.readdirSync(dir.join('anna')).sort(), ['anna.key', 'dora.pub', 'root.json']);
    const proposed = await writ(dir, 'anna', 'root', 'rotate', ...repository, ...change);
    isGolden('proposed', proposed);
    const [, code = ''] = /Code (\S+):/.exec(proposed.stdout) ?? [];
    for (const who of ['ben', 'dora']) mail(dir, 'root-2.proposal', 'anna', who);
    const confirm = ['--confirm', code];
    isGolden('signed', await writ(dir, 'ben', 'sign', 'root-2.proposal', '--key', 'ben.key', ...confirm));
    isGolden(
      'signed-before',
      await writ(dir, 'ben', 'sign', 'root-2.proposal', '--key', 'ben.key', ...confirm),
    );
    const own = await writ(dir, 'anna', 'sign', 'root-2.proposal', '--keys', '.', ...confirm);
    assert.equal(own.exitCode, 0, own.stderr);
    const places = ['--repository', '../repo', '--keys', 'keys'];
    mail(dir, 'root-2.proposal', 'ben', 'founder', 'ben.proposal');
    const alone = await json(dir, 'founder', 'root', 'commit', 'ben.proposal', ...places, ...confirm);
    assert.deepEqual([alone['exitCode'], alone['code']], [1, 'SIGNATURE_THRESHOLD']);
    const dry = await writ(dir, 'founder', 'root', 'commit', 'ben.proposal', ...places, '--dry-run');
    assert.match(dry.stdout, /^NOT COMPLETE root v2: signatures are missing\n/);
    assert.match(dry.stdout, /\n {2}still needed: .*anna/);
    assert.equal(await rootOn(host), 1);
    mail(dir, 'root-2.proposal', 'anna', 'founder', 'anna.proposal');
    const copies = ['root', 'commit', 'anna.proposal', 'ben.proposal', ...places];
    isGolden('commit-dry-run', await writ(dir, 'founder', ...copies, '--dry-run'));
    assert.equal(await rootOn(host), 1);
    isGolden('committed', await writ(dir, 'founder', ...copies, ...confirm));
    isGolden('committed-before', await writ(dir, 'founder', ...copies, ...confirm));
    assert.equal(await rootOn(host), 2);
    await publish(dir, 'two');
    await host.refresh();
    assert.equal((await host.target('dns-edge', 'stable'))?.release.serial, 2);
  });

  it('go on next year from the root that each of them was given at the beginning', longCase, async () => {
    using dir = tempDir();
    await founded(dir);
    const host = hostOf(dir);
    for (const version of [2, 3]) {
      const made = await json(dir, 'anna', 'root', 'rotate', '--repository', '../repo');
      const file = `root-${version}.proposal`;
      const confirm = ['--confirm', String(made['code'])];
      mail(dir, file, 'anna', 'carol');
      await writ(dir, 'carol', 'sign', file, '--key', 'carol.key', ...confirm);
      mail(dir, file, 'carol', 'ben');
      const last = await json(dir, 'ben', 'sign', file, '--key', 'ben.key', ...confirm);
      assert.equal(last['complete'], true, JSON.stringify(last));
      const commit = ['root', 'commit', file, '--repository', '../repo', ...confirm];
      assert.equal((await writ(dir, 'ben', ...commit)).exitCode, 0);
      assert.equal(await rootOn(host), version);
    }
  });

  it('put copies together that they signed side by side', longCase, async () => {
    using dir = tempDir();
    await founded(dir);
    const made = await json(dir, 'anna', 'root', 'threshold', '3', '--repository', '../repo', '--yes');
    assert.equal(made['outcome'], 'proposed');
    const confirm = ['--confirm', String(made['code'])];
    for (const who of ['ben', 'carol']) {
      mail(dir, 'root-2.proposal', 'anna', who);
      await writ(dir, who, 'sign', 'root-2.proposal', '--key', `${who}.key`, ...confirm);
      mail(dir, 'root-2.proposal', who, 'anna', `from-${who}`);
    }
    const merge = ['--merge', 'from-ben', '--merge', 'from-carol'];
    const keys = ['--key', 'anna.key', ...confirm];
    const merged = await json(dir, 'anna', 'sign', 'root-2.proposal', ...merge, ...keys);
    assert.deepEqual([merged['complete'], merged['missing']], [true, []]);
    const only = await json(dir, 'anna', 'sign', 'from-ben', '--merge', 'from-carol', '--root', 'root.json');
    assert.deepEqual([only['outcome'], only['changed'], only['complete']], ['signed', false, false]);
  });
});

describe('a proposal that was swapped in the mail', longCase, () => {
  it('is caught by the code, and gets no signature', async () => {
    using dir = tempDir();
    await founded(dir);
    const told = await json(dir, 'anna', 'root', 'rotate', '--repository', '../repo');
    await writ(dir, 'mallory', 'key', 'new', 'mallory.key', '--name', 'anna', '--no-passphrase');
    const evil = ['--add', 'mallory.pub', '--remove', 'anna'];
    await writ(dir, 'mallory', 'root', 'rotate', '--repository', '../repo', ...evil, '-o', 'evil');
    mail(dir, 'evil', 'mallory', 'ben', 'root-2.proposal');
    const before = fs.readFileSync(dir.join('ben', 'root-2.proposal'));
    const sign = ['sign', 'root-2.proposal', '--key', 'ben.key'];
    const run = await writ(dir, 'ben', ...sign, '--confirm', String(told['code']));
    assert.equal(run.exitCode, 1);
    assert.match(run.stderr, /error\[PROPOSAL_CODE\]/);
    isGolden('swapped', run);
    assert.deepEqual(fs.readFileSync(dir.join('ben', 'root-2.proposal')), before);
    const unasked = await json(dir, 'ben', ...sign);
    assert.deepEqual([unasked['exitCode'], unasked['code']], [2, 'USAGE']);
  });

  it('is refused when it stands on a root of somebody else', async () => {
    using dir = tempDir();
    using other = tempDir();
    await founded(dir);
    await founded(other);
    const made = await json(other, 'anna', 'root', 'rotate', '--repository', '../repo');
    fs.copyFileSync(other.join('anna', 'root-2.proposal'), dir.join('ben', 'root-2.proposal'));
    const confirm = ['--confirm', String(made['code'])];
    const sign = ['sign', 'root-2.proposal', '--key', 'ben.key', ...confirm];
    assert.equal((await json(dir, 'ben', ...sign))['code'], 'PROPOSAL_BASE');
    fs.rmSync(dir.join('ben', 'root.json'));
    assert.equal((await json(dir, 'ben', ...sign))['code'], 'USAGE');
    assert.equal((await json(dir, 'ben', ...sign, '--repository', '../repo'))['code'], 'PROPOSAL_BASE');
  });
});

describe('a key under a passphrase', longCase, () => {
  it('signs when it is opened, after the code; a wrong one leaves the file as it was', async () => {
    using dir = tempDir();
    await founded(dir);
    fs.writeFileSync(dir.join('ben', 'phrase'), 'correct horse');
    const locked = ['key', 'passphrase', 'ben.key', '--new-passphrase-file', 'phrase'];
    assert.equal((await writ(dir, 'ben', ...locked)).exitCode, 0);
    const made = await json(dir, 'anna', 'root', 'rotate', '--repository', '../repo');
    mail(dir, 'root-2.proposal', 'anna', 'ben');
    const before = fs.readFileSync(dir.join('ben', 'root-2.proposal'));
    const sign = ['sign', 'root-2.proposal', '--key', 'ben.key', '--confirm', String(made['code'])];
    assert.equal((await json(dir, 'ben', ...sign))['code'], 'PASSPHRASE_NEEDED');
    const wrong = await json(dir, 'ben', ...sign, '--passphrase-command', 'echo wrong');
    assert.equal(wrong['code'], 'PASSPHRASE_WRONG');
    assert.deepEqual(fs.readFileSync(dir.join('ben', 'root-2.proposal')), before);
    const right = await json(dir, 'ben', ...sign, '--passphrase-file', 'phrase');
    assert.deepEqual([right['exitCode'], right['changed']], [0, true]);
    const stranger = await json(dir, 'mallory', 'key', 'new', 'm.key', '--no-passphrase');
    assert.equal(stranger['outcome'], 'created');
    const keys = ['--key', '../mallory/m.key', '--root', 'root.json', '--confirm', String(made['code'])];
    assert.equal((await json(dir, 'ben', 'sign', 'root-2.proposal', ...keys))['code'], 'KEYS_MISSING');
  });
});

describe('a person at a terminal', { ...needs('script', 'bsdutils'), ...longCase }, () => {
  it('is shown what changes before the code is asked, and signs only with the right one', async () => {
    using dir = tempDir();
    await founded(dir);
    const made = await json(dir, 'anna', 'root', 'rotate', '--repository', '../repo');
    const code = String(made['code']);
    const file = dir.join('anna', 'root-2.proposal');
    const sign = ['sign', file, '--key', dir.join('anna', 'anna.key')];
    const question = 'Type the code that you compared by voice';
    const wrong = await writOnTerminal(sign, Array(3).fill({ question, typed: '3f1a-77c2-3f1a-77c2' }));
    assert.deepEqual([wrong.exitCode, wrong.untyped], [1, 0], wrong.screen);
    assert.ok(wrong.screen.indexOf('who controls every host') < wrong.screen.indexOf(question));
    assert.ok(!wrong.screen.includes(code), 'the code is told by voice, never by the file');
    const right = await writOnTerminal(sign, [
      { question, typed: 'oh' },
      { question, typed: code.toUpperCase().replaceAll('-', ' ') },
    ]);
    assert.equal(right.exitCode, 0, right.screen);
    assert.match(right.screen, /SIGNED.* by anna\. Old 1\/2 \(anna\), new 1\/2 \(anna\)\./);
  });
});

describe('keys of devices', { ...needs('openssl', 'openssl'), ...longCase }, () => {
  it('of three kinds are a root, and sign the next one', async () => {
    using dir = tempDir();
    await founded(dir);
    const kinds = ['ed25519', 'ecdsa', 'rsa'] as const;
    const devices = kinds.map((kind) => makeOpensslKey(dir, kind));
    const add = devices.flatMap(({ publicPath }) => ['--add', publicPath]);
    const all = ['--remove', 'anna', '--remove', 'ben', '--remove', 'carol'];
    const made = await json(
      dir,
      'anna',
      'root',
      'rotate',
      '--repository',
      '../repo',
      ...all,
      ...add,
      '--yes',
    );
    const confirm = ['--confirm', String(made['code'])];
    mail(dir, 'root-2.proposal', 'anna', 'ben');
    await writ(dir, 'ben', 'sign', 'root-2.proposal', '--key', 'ben.key', ...confirm);
    mail(dir, 'root-2.proposal', 'ben', 'anna');
    const signers = devices.slice(1).flatMap(({ signCommand }) => ['--signer', signCommand]);
    const sign = ['sign', 'root-2.proposal', '--key', 'anna.key', ...signers, ...confirm];
    const signed = await json(dir, 'anna', ...sign);
    assert.equal(signed['complete'], true, JSON.stringify(signed));
    const commit = ['root', 'commit', '--repository', '../repo'];
    assert.equal((await writ(dir, 'anna', ...commit, 'root-2.proposal', ...confirm)).exitCode, 0);
    const next = await json(dir, 'anna', 'root', 'rotate', '--repository', '../repo');
    const again = ['--confirm', String(next['code'])];
    const [first, second] = devices.map(({ signCommand }) => signCommand);
    const both = ['--signer', first ?? '', '--signer', second ?? '', '--root', 'root.json'];
    await writ(dir, 'anna', 'sign', 'root-3.proposal', ...both, ...again);
    const done = await writ(dir, 'anna', ...commit, 'root-3.proposal', ...again);
    assert.equal(done.exitCode, 0, done.stderr);
    assert.equal(await rootOn(hostOf(dir)), 3);
  });
});
