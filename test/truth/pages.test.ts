// The pages that the cells are played from, held to the code: every daemon has its page and its row, every configuration on
// them is one that the agent takes, and what CI must install is said.
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
  it('has a page for each daemon that is tried, and no other', () => {
    const pages = readdirSync(join(projectRoot, 'docs/daemons')).map((name) => name.slice(0, -'.md'.length));
    assert.deepEqual(pages.sort(), [...names, 'README'].sort());
  });

  it('has each of them in its index', () => {
    const listed = [...read('docs/daemons/README.md').matchAll(/\]\(([a-z0-9-]+)\.md\)/g)].map(
      ([, name]) => name,
    );
    assert.deepEqual([...new Set(listed)].sort(), [...names].sort());
  });

  it('has one order on every page', () => {
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
    it(`has a configuration that the agent takes without a warning: ${name}`, () => {
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

  it('has every cell, each of which was played', () => {
    assert.deepEqual([...recorded.keys()].sort(), [...cells].sort());
    assert.deepEqual(
      [...recorded].filter(([, verdict]) => verdict === '?'),
      [],
    );
  });

  it('has in each page of a daemon the row that it has itself', () => {
    for (const name of names) {
      for (const [cell, verdict] of readTable(read(`docs/daemons/${name}.md`))) {
        assert.equal(verdict, recorded.get(cell), cell);
      }
    }
  });

  it("has the result of each daemon whose page names its unit, under Debian's own units", () => {
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

  it('names the cases that every run plays, and those that wait', () => {
    assert.deepEqual(
      [...always, ...slow].filter((one) => !cases.some(({ name }) => name === one)),
      [],
    );
  });
});
