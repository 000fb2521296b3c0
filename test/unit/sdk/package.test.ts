// What a worker gets that imports `writ/sdk`, by the name of the package.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { runNodeScript } from '../../kit/cli/child-script.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { loadedSources, tracingEnv } from '../../kit/sources/loaded-sources.js';

describe('writ/sdk', () => {
  it('is one function, and needs no package but Node', async () => {
    using dir = tempDir();
    const trace = dir.join('imports');
    const script = `console.log(Object.keys(await import('writ/sdk')).join());`;
    const ended = await runNodeScript(script, tracingEnv(trace));
    assert.ok(ended.kind === 'exited');
    assert.equal(ended.stdout, 'connectPolicy\n', ended.stderr);
    const { sources, joined, whole } = loadedSources(trace);
    assert.ok(sources.includes('src/sdk/policy-reader.ts'));
    assert.deepEqual(
      sources.filter((path) => !/^src\/(sdk|core)\//.test(path)),
      [],
    );
    assert.deepEqual([joined, whole], [[], []]);
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
