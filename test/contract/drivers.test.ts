import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { defaultPlaces } from '../../src/core/config/config-values.js';
import { parseConfig } from '../../src/core/config/parse-config.js';
import type { Answer } from '../../src/workers/contract/driver.js';
import { driverKinds } from '../../src/workers/registry.js';
import { fakeClock } from '../kit/clock/fake-clock.js';
import { tempDir } from '../kit/disk/temp-dir.js';
import { follows } from '../kit/programs/follows-driver.js';
import { driverContext } from '../kit/workers/driver-context.js';

const root = join(import.meta.dirname, '../../..');
const page = readFileSync(join(root, 'docs/drivers.md'), 'utf8');
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    (match) => match[1] ?? '',
  );

describe('docs/drivers.md', () => {
  it('has a section and a row for every driver', () => {
    for (const { name } of driverKinds) {
      assert.match(page, new RegExp(`^## ${name}: `, 'm'), name);
      assert.match(page, new RegExp(`^\\| \`${name}\` \\|`, 'm'), name);
    }
  });

  for (const [index, yaml] of blocks('yaml').entries()) {
    it(`shows a reset that the agent accepts, number ${index + 1}`, () => {
      const reset = yaml.replaceAll('\n', '\n    ');
      const file = `repository: https://a/\nbundles: [{ name: a }]\nworkers:\n  - name: w\n    uses: [a]\n    ${reset}`;
      const parsed = parseConfig(file, {
        drivers: driverKinds,
        validateCron: () => undefined,
        defaults: { ...defaultPlaces, hostId: 'host-1' },
      });
      assert.deepEqual(parsed.ok ? [] : parsed.mistakes, []);
      const configured = parsed.ok ? parsed.config.workers[0]?.reset : undefined;
      const kind = driverKinds.find((one) => one.name === configured?.driver);
      assert.ok(kind?.create(configured?.options ?? {}, driverContext()) !== undefined);
    });
  }

  it('shows the driver that is compiled and tested here', () => {
    const source = readFileSync(join(root, 'test/kit/programs/follows-driver.ts'), 'utf8');
    const inPlace = source
      .replaceAll("'../../../src/workers/", "'../")
      .replaceAll("'../../../src/", "'../../");
    assert.deepEqual(blocks('ts'), [inPlace]);
  });
});

describe('the driver of docs/drivers.md', () => {
  const target = { generation: 7, path: '/policy/generations/7' };

  async function ask(note: string | undefined, change?: string): Promise<Answer> {
    using dir = tempDir();
    if (note !== undefined) writeFileSync(dir.join('note'), note);
    const clock = fakeClock({ mode: 'skip' });
    const sleep = async (delayMs: number): Promise<void> => {
      await clock.sleep(delayMs);
      if (change !== undefined) writeFileSync(dir.join('note'), change);
    };
    const driver = follows.create(
      { follows: dir.join('note') },
      driverContext({ clock: { ...clock, sleep } }),
    );
    return await driver.reset('note', { target, timeoutMs: 1000 });
  }

  it('confirms after the daemon has recorded this generation, at once or later', async () => {
    assert.deepEqual(await ask('7\n'), { kind: 'confirmed', text: 'uses generation 7' });
    assert.equal((await ask('6\n', '7\n')).kind, 'confirmed');
  });

  it('reports an error about this generation as a refusal, and ignores a note about an older one', async () => {
    assert.deepEqual(await ask('error 7 line 3\n'), { kind: 'refused', text: 'error 7 line 3' });
    for (const note of ['6\n', 'error 6 line 3\n', '77\n', '', undefined])
      assert.equal((await ask(note)).kind, 'unreachable', String(note));
  });

  it('has a member while a note exists', async () => {
    using dir = tempDir();
    const driver = follows.create({ follows: dir.join('note') }, driverContext());
    assert.deepEqual(await driver.members(), []);
    writeFileSync(dir.join('note'), '7');
    assert.deepEqual(await driver.members(), ['note']);
    rmSync(dir.join('note'));
    assert.deepEqual(await driver.members(), []);
  });
});
