// Reads a page of docs/daemons as the configuration that the cells use.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { placed, readRecipe, readRepeat } from './recipe.js';

const page = `# Daemon

\`\`\`yaml
bundles: []
\`\`\`

In its own file:

\`\`\`conf
include /var/lib/writ/policy;
\`\`\`

\`\`\`text
not this
\`\`\`
`;

describe('a recipe', () => {
  it('is the first block of YAML and the first one of the daemon', () => {
    assert.deepEqual(readRecipe(`${page}\`\`\`yaml\nlater: 1\n\`\`\`\n`), {
      agent: 'bundles: []\n',
      own: 'include /var/lib/writ/policy;\n',
    });
  });

  it('may lack lines of the daemon, but not those of Writ', () => {
    assert.equal(readRecipe(page.replace('```conf', '```text')).own, '');
    assert.throws(() => readRecipe(page.replace('```yaml', '```yml')), /no block of yaml/);
  });

  it('may have a program instead of a configuration of the daemon', () => {
    assert.equal(readRecipe('```yaml\na: 1\n```\n```js\nrun();\n```\n').own, 'run();\n');
  });

  it('does not end at three backticks inside a line', () => {
    assert.equal(readRecipe('```yaml\na: "```"\n```\n').agent, 'a: "```"\n');
  });
});

describe('the repeated probe of a recipe', () => {
  const repeatOf = (group: string) => readRepeat(`workers:\n  - name: d\n${group}`);

  it('is the probe of its group when that has an interval', () => {
    assert.equal(repeatOf('    probe: { run: [ask], every: 1m }\n').everyMs, 60_000);
    assert.equal(repeatOf('    probe: { run: [ask] }\n').everyMs, 0);
    assert.equal(repeatOf('    reset: { signal: HUP }\n').everyMs, 0);
  });

  it('restores a group that can be notified, but not one with only a loader', () => {
    assert.equal(repeatOf('    reset: { signal: HUP }\n').canRestore, true);
    assert.equal(repeatOf('    load: { run: [cf-agent] }\n').canRestore, false);
  });
});

describe('the places of a recipe', () => {
  const recipe = { agent: 'pid: /run/d.pid\nask: http://127.0.0.1/\n', own: 'pid /run/d.pid;\n' };

  it('are replaced everywhere, in both blocks', () => {
    assert.deepEqual(placed(recipe, [['/run/d.pid', '/var/tmp/x/pid']]), {
      agent: 'pid: /var/tmp/x/pid\nask: http://127.0.0.1/\n',
      own: 'pid /var/tmp/x/pid;\n',
    });
  });

  it('are replaced longest first, in any order, and a replacement is not replaced again', () => {
    const places = [
      ['/run', '/b'],
      ['/run/d.pid', '/run/run'],
      ['127.0.0.1/', '127.0.0.1:80/'],
    ] as const;
    const more = { agent: `${recipe.agent}dir: /run\n`, own: '' };
    assert.equal(placed(more, places).agent, 'pid: /run/run\nask: http://127.0.0.1:80/\ndir: /b\n');
  });

  it('are literal texts, as are their replacements', () => {
    assert.equal(placed({ agent: 'a.b axb\n', own: '' }, [['a.b', '$&']]).agent, '$& axb\n');
  });

  it('are required on the page', () => {
    assert.throws(() => placed(recipe, [['/run/e.pid', 'x']]), /not on the page: \/run\/e\.pid/);
  });

  it('may be none', () => assert.deepEqual(placed(recipe, []), recipe));
});
