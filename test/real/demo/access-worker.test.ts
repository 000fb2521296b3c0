// The worker and the policy of the demo. The worker answers from the policy of its last notification; the policy fits its schema.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import type { Answer, Driver } from '../../../src/workers/contract/driver.js';
import { native } from '../../../src/workers/drivers/native.js';
import { until } from '../../kit/assert/until.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { driverContext } from '../../kit/workers/driver-context.js';

const program = fileURLToPath(new URL('../../../demo/access-worker.js', import.meta.url));
const bundle = 'bundles/access';

interface Running {
  readonly url: string;
  stop(): Promise<number | null>;
}

async function start(socket: string): Promise<Running> {
  const child: ChildProcess = spawn(process.execPath, [program, socket, '0', 'w'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const line = await new Promise<string>((resolve) => {
    child.stdout?.once('data', (chunk) => resolve(String(chunk)));
  });
  return {
    url: /http:\S+/.exec(line)?.[0] ?? '',
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', (exitCode) => resolve(exitCode));
        child.kill('SIGTERM');
      }),
  };
}

function generationIn(dir: TempDir, generation: number, change: (policy: string) => string): string {
  const path = dir.join('generations', String(generation));
  mkdirSync(path, { recursive: true });
  cpSync(bundle, `${path}/access`, { recursive: true });
  writeFileSync(`${path}/access/policy.yaml`, change(readFileSync(`${bundle}/policy.yaml`, 'utf8')));
  return path;
}

async function notify(driver: Driver, generation: number, path: string): Promise<Answer> {
  await until(async () => (await driver.members()).includes('w'));
  return driver.reset('w', { target: { generation, path }, timeoutMs: 60_000 });
}

describe('the sample worker', () => {
  it('answers from the policy of its notification, and keeps it when it refuses the next one', async () => {
    using dir = tempDir();
    const driver = native.create({ native: 'access' }, driverContext({ runDirectory: dir.path }));
    await driver.open?.();
    const worker = await start(dir.join('workers/access.sock'));
    const ask = async (user: string, action: string): Promise<unknown> =>
      (await fetch(`${worker.url}/allowed?user=${user}&action=${action}`)).json();

    assert.deepEqual(await ask('bob', 'report.write'), { allowed: false, generation: null, name: 'w' });
    assert.equal(
      (
        await notify(
          driver,
          1,
          generationIn(dir, 1, (text) => text),
        )
      ).kind,
      'confirmed',
    );
    assert.deepEqual(await ask('bob', 'report.write'), { allowed: true, generation: 1, name: 'w' });
    assert.deepEqual(await ask('bob', 'user.remove'), { allowed: false, generation: 1, name: 'w' });
    assert.deepEqual(await ask('__proto__', 'toString'), { allowed: false, generation: 1, name: 'w' });

    const second = generationIn(dir, 2, (text) => text.replace('bob: [editor]', 'bob: [reader]'));
    assert.equal((await notify(driver, 2, second)).kind, 'confirmed');
    assert.deepEqual(await ask('bob', 'report.write'), { allowed: false, generation: 2, name: 'w' });

    const third = generationIn(dir, 3, (text) => text.replace('bob: [editor]', 'bob: [admn]'));
    assert.deepEqual(await notify(driver, 3, third), {
      kind: 'refused',
      text: 'policy.yaml: user bob has the unknown role admn',
    });
    assert.deepEqual(await ask('alice', 'user.remove'), { allowed: true, generation: 2, name: 'w' });

    assert.equal(await worker.stop(), 0);
    await driver.close?.();
  });
});

describe('the sample policy', () => {
  it('fits its schema, which refuses a misspelt member', () => {
    const schema = JSON.parse(readFileSync(`${bundle}/policy.schema.json`, 'utf8'));
    const validate = new Ajv({ strict: true }).compile(schema);
    const policy: Record<string, unknown> = parse(readFileSync(`${bundle}/policy.yaml`, 'utf8'));
    assert.ok(validate(policy), JSON.stringify(validate.errors));
    const bad = [{ user: {} }, { version: 2 }, { users: { bob: 'editor' } }, { roles: {} }];
    for (const change of bad) assert.equal(validate({ ...policy, ...change }), false, JSON.stringify(change));
  });
});
