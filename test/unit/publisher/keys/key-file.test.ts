import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { openSeed } from '../../../../src/publisher/keys/key-directory.js';
import {
  createKeyFile,
  newSeed,
  publicKeyOf,
  readKeyFile,
  replaceKeyFile,
  unlockKey,
} from '../../../../src/publisher/keys/key-file.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

const durableFs = createDurableFs();

function makeKey(dir: TempDir, passphrase?: string): { path: string; seed: Uint8Array } {
  const path = dir.join('one.key');
  const seed = newSeed();
  createKeyFile({ path, seed, durableFs, ...(passphrase === undefined ? {} : { passphrase }) });
  return { path, seed };
}

let locked: { readonly seed: Uint8Array; readonly text: string } | undefined;

/** Writes a key file under the passphrase `old`. Its secret is locked only once, because each lock takes 100 ms. */
function writeLocked(dir: TempDir): { path: string; seed: Uint8Array } {
  const path = dir.join('one.key');
  if (locked === undefined) {
    const { seed } = makeKey(dir, 'old');
    locked = { seed, text: fs.readFileSync(path, 'utf8') };
  }
  fs.writeFileSync(path, locked.text, { mode: 0o600 });
  return { path, seed: locked.seed };
}

function rewrite(path: string, change: (file: Record<string, unknown>) => void): void {
  const file = JSON.parse(fs.readFileSync(path, 'utf8'));
  change(file);
  fs.writeFileSync(path, JSON.stringify(file));
}

describe('a key file under a passphrase', () => {
  it('gives the secret back for the passphrase, however its letters were composed', () => {
    using dir = tempDir();
    const { path, seed } = makeKey(dir, 'schlüssel');
    const file = readKeyFile(path)!;
    assert.equal(file.publicKey, publicKeyOf(seed));
    assert.deepEqual(unlockKey(file, 'schlu\u0308ssel'), seed);
  });

  it('contains no byte of the secret unencrypted', () => {
    using dir = tempDir();
    const { path, seed } = makeKey(dir, 'x');
    const text = fs.readFileSync(path, 'utf8');
    for (const encoding of ['base64', 'hex'] as const) {
      assert.ok(!text.includes(Buffer.from(seed).toString(encoding)));
    }
  });

  it('refuses a wrong passphrase, and none', () => {
    using dir = tempDir();
    const file = readKeyFile(writeLocked(dir).path)!;
    assert.throws(() => unlockKey(file, 'wrong'), { code: 'PASSPHRASE_WRONG' });
    assert.throws(() => unlockKey(file, undefined), { code: 'PASSPHRASE_NEEDED' });
  });

  it('is asked for three times at most', async () => {
    using dir = tempDir();
    const file = readKeyFile(writeLocked(dir).path)!;
    const attempts: number[] = [];
    const ask = async (_: string, attempt: number): Promise<string> => {
      attempts.push(attempt);
      if (attempt > 3) throw new Error('asked again');
      return 'wrong';
    };
    await assert.rejects(openSeed(file, { ask }), { code: 'PASSPHRASE_WRONG' });
    assert.deepEqual(attempts, [1, 2, 3]);
  });

  it('refuses a public key that is not its own', () => {
    using dir = tempDir();
    const { path } = writeLocked(dir);
    rewrite(path, (file) => {
      file['public'] = publicKeyOf(newSeed());
    });
    assert.throws(() => unlockKey(readKeyFile(path)!, 'old'), { code: 'KEY_UNREADABLE' });
  });

  for (const [name, scrypt] of Object.entries({
    'N of hours': { N: 2 ** 40, r: 8, p: 1 },
    'N that is no power of two': { N: 1000, r: 8, p: 1 },
    'N of one': { N: 1, r: 8, p: 1 },
    'r beyond memory': { N: 2 ** 15, r: 2 ** 20, p: 1 },
    'p of days': { N: 2 ** 15, r: 8, p: 10_000 },
    'p of nothing': { N: 2 ** 15, r: 8, p: 0 },
    'N as text': { N: '32768', r: 8, p: 1 },
  })) {
    it(`refuses scrypt parameters out of bounds: ${name}`, () => {
      using dir = tempDir();
      const { path } = writeLocked(dir);
      rewrite(path, (file) => {
        file['scrypt'] = { ...(file['scrypt'] as object), ...scrypt };
      });
      assert.throws(() => readKeyFile(path), { code: 'KEY_UNREADABLE' });
    });
  }
});

describe('a key file under another passphrase', longCase, () => {
  it('is the complete old or new one after the failure of any write', () => {
    const ops = ['keys.replace:write', 'keys.replace:rename', 'keys.replace:flush-directory'];
    for (const failing of ops) {
      using dir = tempDir();
      const { path, seed } = writeLocked(dir);
      const before = ({ op }: { op: string }): void => {
        if (op === failing) throw new Error('crash');
      };
      const crashing = createDurableFs({ before });
      const change = { path, seed, passphrase: 'new', name: 'anna' };
      assert.throws(() => replaceKeyFile({ ...change, durableFs: crashing }), /crash/);
      const opened = failing === 'keys.replace:flush-directory' ? 'new' : 'old';
      assert.deepEqual(unlockKey(readKeyFile(path)!, opened), seed);
      assert.deepEqual(fs.readdirSync(dir.path), ['one.key']);
      replaceKeyFile({ ...change, durableFs });
      const file = readKeyFile(path)!;
      assert.deepEqual([unlockKey(file, 'new'), file.name], [seed, 'anna']);
      assert.throws(() => unlockKey(file, 'old'), { code: 'PASSPHRASE_WRONG' });
      assert.equal(fs.statSync(path).mode & 0o777, 0o600);
    }
  });
});

describe('a key file', () => {
  it('is 0600 under any umask', () => {
    using dir = tempDir();
    const before = process.umask(0);
    try {
      assert.equal(fs.statSync(makeKey(dir).path).mode & 0o777, 0o600);
    } finally {
      process.umask(before);
    }
  });

  it('is never overwritten, not even through a link', () => {
    using dir = tempDir();
    const { path } = makeKey(dir);
    const before = fs.readFileSync(path);
    assert.throws(() => makeKey(dir), { code: 'KEY_EXISTS' });
    fs.symlinkSync('nowhere', dir.join('link'));
    const options = { path: dir.join('link'), seed: newSeed(), durableFs };
    assert.throws(() => createKeyFile(options), { code: 'KEY_EXISTS' });
    assert.deepEqual(fs.readFileSync(path), before);
  });

  it('without encryption needs no passphrase', () => {
    using dir = tempDir();
    const { path, seed } = makeKey(dir);
    assert.deepEqual(unlockKey(readKeyFile(path)!, undefined), seed);
  });

  it('that does not exist is not read', () => {
    using dir = tempDir();
    assert.equal(readKeyFile(dir.join('none')), undefined);
  });

  const whole = { 'writ-key': 1, scheme: 'ed25519', public: 'a'.repeat(64), secret: 'A'.repeat(43) };
  const changed: Readonly<Record<string, object>> = {
    'another format': { 'writ-key': 2 },
    'another scheme': { scheme: 'rsa' },
    'a public key in capitals': { public: 'A'.repeat(64) },
  };
  for (const [name, change] of Object.entries(changed)) {
    it(`is refused although the rest of it is valid: ${name}`, () => {
      using dir = tempDir();
      fs.writeFileSync(dir.join('whole.key'), JSON.stringify(whole));
      assert.equal(readKeyFile(dir.join('whole.key'))?.publicKey, whole.public);
      fs.writeFileSync(dir.join('changed.key'), JSON.stringify({ ...whole, ...change }));
      assert.throws(() => readKeyFile(dir.join('changed.key')), { code: 'KEY_UNREADABLE' });
    });
  }

  for (const [name, change] of Object.entries({
    'a negative block size': { r: -1 },
    'a negative parallelism': { p: -1 },
    'half a block': { r: 7.5 },
    'a block size in text': { r: '8' },
  })) {
    it(`is refused although the rest of its parameters is valid: ${name}`, () => {
      using dir = tempDir();
      const { path } = writeLocked(dir);
      rewrite(path, (file) => Object.assign(file['scrypt'] as object, change));
      assert.throws(() => readKeyFile(path), { code: 'KEY_UNREADABLE' });
    });
  }

  const broken: Readonly<Record<string, string>> = {
    'no JSON': '{',
    null: 'null',
    'an array': '[]',
    'no public key': '{"writ-key":1,"scheme":"ed25519","secret":"AA=="}',
    'a short secret': `{"writ-key":1,"scheme":"ed25519","public":"${'a'.repeat(64)}","secret":"AA=="}`,
    'no secret': `{"writ-key":1,"scheme":"ed25519","public":"${'a'.repeat(64)}"}`,
    'too long': `"${'x'.repeat(20_000)}"`,
  };
  for (const [name, text] of Object.entries(broken)) {
    it(`is refused: ${name}`, () => {
      using dir = tempDir();
      fs.writeFileSync(dir.join('broken.key'), text);
      assert.throws(() => readKeyFile(dir.join('broken.key')), { code: 'KEY_UNREADABLE' });
    });
  }

  it('is refused when it is a directory or a FIFO, without waiting', () => {
    using dir = tempDir();
    assert.throws(() => readKeyFile(dir.path), { code: 'KEY_UNREADABLE' });
    execFileSync('mkfifo', [dir.join('fifo.key')]);
    assert.throws(() => readKeyFile(dir.join('fifo.key')), { code: 'KEY_UNREADABLE' });
  });
});
