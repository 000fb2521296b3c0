// What a worker gets that imports `writ/sdk`, by the name of the package.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { runScript } from '../../kit/cli/child-script.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

describe('writ/sdk', () => {
  it('is one function, and needs no package but Node', async () => {
    using dir = tempDir();
    const trace = dir.join('imports');
    const hook = new URL('../../kit/sources/trace-imports.js', import.meta.url).href;
    const script = `console.log(Object.keys(await import('writ/sdk')).join());`;
    const env = { NODE_OPTIONS: `--import=${hook}`, WRIT_TRACE_IMPORTS: trace };
    const ended = await runScript(script, env);
    assert.ok(ended.kind === 'exited');
    assert.equal(ended.stdout, 'connectPolicy\n', ended.stderr);
    const loaded = readFileSync(trace, 'utf8').trim().split('\n');
    assert.ok(loaded.some((url) => url.endsWith('/src/sdk/policy-reader.js')));
    const foreign = loaded.filter((url) => !url.startsWith('node:') && !/\/src\/(sdk|core)\//.test(url));
    assert.deepEqual(foreign, []);
  });

  it('is documented with every event that there is', () => {
    const page = readFileSync('docs/native-protocol.md', 'utf8');
    const [, rows = ''] = /\| event \| with \| when \|\n\|---\|---\|---\|\n([\s\S]*?)\n\n/.exec(page) ?? [];
    const documented = [...rows.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
    const source = readFileSync('src/sdk/policy-events.ts', 'utf8');
    assert.deepEqual(
      documented,
      [...source.matchAll(/readonly type: '(\w+)'/g)].map(([, name]) => name),
    );
  });
});
