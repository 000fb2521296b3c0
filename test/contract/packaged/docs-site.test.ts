// The sidebar of the docs site has each page of docs/, so that a reader finds it. The site itself is tested in site/, which
// has packages of its own.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { projectRoot } from '../../kit/sources/source-files.js';

interface Group {
  readonly title: string;
  readonly entries: readonly { readonly source: string }[];
}

interface Sidebar {
  sidebar(): readonly Group[];
  sidebarGaps(groups?: readonly Group[]): {
    readonly missing: readonly string[];
    readonly empty: readonly string[];
  };
}

const { sidebar, sidebarGaps }: Sidebar = await import(
  pathToFileURL(join(projectRoot, 'site', 'sidebar.js')).href
);

describe('the sidebar of the docs site', () => {
  it('has every page of docs/, and no page that does not exist (site/sidebar.js)', () => {
    assert.deepEqual(sidebarGaps(), { missing: [], empty: [] });
  });

  it('reports a missing page, and an entry without a page', () => {
    const others = sidebar().map((group) => ({
      ...group,
      entries: group.entries.filter(({ source }) => source !== 'docs/fleet.md'),
    }));
    const gaps = sidebarGaps([...others, { title: 'x', entries: [{ source: 'docs/nowhere.md' }] }]);
    assert.deepEqual(gaps, { missing: ['docs/fleet.md'], empty: ['docs/nowhere.md'] });
  });

  it('has each page once, and begins with the pages for newcomers', () => {
    const sources = sidebar().flatMap(({ entries }) => entries.map(({ source }) => source));
    assert.equal(new Set(sources).size, sources.length);
    assert.deepEqual(sources.slice(0, 3), ['README.md', 'docs/install.md', 'docs/coming-from.md']);
  });
});
