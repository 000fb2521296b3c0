// The pages that the cells use: every daemon has its page and its row, the agent accepts every configuration on them, and the
// packages that CI must install are listed.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfig } from '../../src/agent/config/load-config.js';
import { tempDir } from '../kit/disk/temp-dir.js';
import { projectRoot } from '../kit/sources/source-files.js';
import { always, cases, slow } from './cases/cases.js';
import { daemons } from './daemons/all.js';
import { readTable } from './rules/page.js';
import { readRecipe } from './rules/recipe.js';

const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');
const names = daemons.map(({ name }) => name);

describe('docs/daemons', () => {
  it('has a page for each tested daemon, and no other', () => {
    const pages = readdirSync(join(projectRoot, 'docs/daemons')).map((name) => name.slice(0, -'.md'.length));
    assert.deepEqual(pages.sort(), [...names, 'README'].sort());
  });

  it('lists each page in its index', () => {
    const listed = [...read('docs/daemons/README.md').matchAll(/\]\(([a-z0-9-]+)\.md\)/g)].map(
      ([, name]) => name,
    );
    assert.deepEqual([...new Set(listed)].sort(), [...names].sort());
  });

  it('has the same order on every page', () => {
    const order = ['Check', 'Notify', 'Probe', 'Unreachable', 'Its own answer'];
    for (const name of names) {
      const parts = [...read(`docs/daemons/${name}.md`).matchAll(/^- \*\*(.+?)\*\*/gm)].map(
        ([, part]) => part,
      );
      assert.deepEqual(parts.slice(0, order.length), order, name);
    }
  });

  it('links to files that exist', () => {
    const folder = join(projectRoot, 'docs/daemons');
    const broken = readdirSync(folder).flatMap((name) =>
      [...read(`docs/daemons/${name}`).matchAll(/\]\(([^)#:]+)/g)]
        .map(([, target = '']) => target)
        .filter((target) => !existsSync(join(folder, target)))
        .map((target) => `${name} -> ${target}`),
    );
    assert.deepEqual(broken, []);
  });

  for (const { name } of daemons) {
    it(`has a configuration that the agent accepts without a warning: ${name}`, () => {
      using dir = tempDir();
      const config = dir.join('agent.yaml');
      writeFileSync(
        config,
        `repository: file:///srv/policy\n${readRecipe(read(`docs/daemons/${name}.md`)).agent}`,
      );
      assert.deepEqual(loadConfig(config).warnings, []);
    });
  }
});

describe('docs/truth.md', () => {
  const recorded = readTable(read('docs/truth.md'));
  const cells = names.flatMap((name) => cases.map((one) => `${name}:${one.name}`));

  it('has every cell, each with a result', () => {
    assert.deepEqual([...recorded.keys()].sort(), [...cells].sort());
    assert.deepEqual(
      [...recorded].filter(([, verdict]) => verdict === '?'),
      [],
    );
  });

  it('has the same row as each page of a daemon', () => {
    for (const name of names) {
      for (const [cell, verdict] of readTable(read(`docs/daemons/${name}.md`))) {
        assert.equal(verdict, recorded.get(cell), cell);
      }
    }
  });

  it("has the result of each daemon with a unit on its page, under Debian's own units", () => {
    const part = /<!-- units -->([\s\S]*?)<!-- \/units -->/.exec(read('docs/truth.md'))?.[1] ?? '';
    const [head = [], , ...rows] = part
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) => line.split('|').slice(1, -1))
      .map((cells) => cells.map((cell) => cell.trim()));
    const units = names.flatMap(
      (name) =>
        /process: \{ unit: (\S+) \}/.exec(readRecipe(read(`docs/daemons/${name}.md`)).agent)?.[1] ?? [],
    );
    const untried = units.filter((unit) => !rows.some(([cell]) => cell?.startsWith(`${unit},`)));
    assert.deepEqual(untried, []);
    assert.equal(rows.length, units.length);
    assert.equal(head.at(-1), 'kill');
    for (const [unit, ...cells] of rows) {
      const [kill = '', ...others] = cells.reverse();
      assert.match(kill, /^taken back; (systemd|a person) starts it$/, unit);
      assert.deepEqual([...new Set(others)], ['settles'], unit);
    }
  });

  it('names the cases of every run, and the slow ones', () => {
    assert.deepEqual(
      [...always, ...slow].filter((one) => !cases.some(({ name }) => name === one)),
      [],
    );
  });
});
