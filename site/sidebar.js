// The order of the pages for a new reader: install, configure, operate, reference, understand. A test of the root
// compares it with docs/. It needs no package, and reads only the names of files.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..');

/** Made at the build from the program itself: it has no source in docs/. */
export const commandsPage = 'commands';

/** A source, and its name in the sidebar where the heading of the page is too long for it. */
const groups = [
  [
    'Start',
    [
      ['README.md', 'Overview and first steps'],
      ['docs/install.md'],
      ['docs/coming-from.md', 'I use something else'],
    ],
  ],
  [
    'Configure',
    [
      ['docs/configuration.md'],
      ['docs/drivers.md', 'Workers and drivers'],
      ['docs/sandbox.md', 'Sandbox of checks'],
      ['docs/native-protocol.md', 'Workers of your own'],
      ['docs/examples/README.md', 'Examples'],
      ['docs/examples/access/README.md', 'Example: access'],
      ['docs/examples/dns-edge/README.md', 'Example: dns-edge'],
      ['docs/examples/limits/README.md', 'Example: limits'],
    ],
  ],
  ['Daemons', [['docs/daemons/README.md', 'All daemons'], ...folder('docs/daemons')], 'folded'],
  [
    'Operate',
    [
      ['docs/operations.md', 'Runbooks'],
      ['docs/systemd.md', 'systemd and containers'],
      ['docs/server.md', 'Serving a repository'],
      ['docs/fleet.md', 'Fleet'],
      ['docs/postgresql.md', 'Fleet on PostgreSQL'],
      ['docs/monitoring.md', 'Monitoring'],
      ['docs/scale.md', 'Scale'],
      ['SECURITY.md', 'Security'],
    ],
  ],
  [
    'Look up',
    [
      [commandsPage, 'Commands'],
      ['docs/errors.md', 'Error codes'],
      ['docs/json.md', 'JSON'],
      ['docs/events.md', 'Events'],
      ['CHANGELOG.md', 'Changes'],
    ],
  ],
  [
    'Understand',
    [
      ['docs/ARCHITECTURE.md', 'Architecture'],
      ['docs/threat-model.md', 'Threat model'],
      ['docs/reliability.md', 'Reliability'],
      ['docs/outages.md', 'Outages'],
      ['docs/truth.md', 'Truth'],
      ['docs/acceptance.md', 'Acceptance'],
      ['docs/performance.md', 'Performance'],
      ['CONTRIBUTING.md', 'Contributing'],
    ],
  ],
  ['Decisions', [['docs/adr/README.md', 'All decisions'], ...folder('docs/adr')], 'folded'],
];

/** Every page of a folder but its README, in the order of their names. */
function folder(path) {
  return readdirSync(join(root, path))
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .sort()
    .map((name) => [`${path}/${name}`]);
}

/** @returns groups of { title, folded, entries: [{ source, label }] }; folded: shown open only around its own pages */
export function sidebar() {
  return groups.map(([title, entries, folded]) => ({
    title,
    folded: folded === 'folded',
    entries: entries.map(([source, label]) => ({ source, label })),
  }));
}

/** @returns pages of docs/ that no reader would find, and entries that have no page */
export function sidebarGaps(groupsShown = sidebar()) {
  const listed = groupsShown.flatMap(({ entries }) => entries.map(({ source }) => source));
  const pages = readdirSync(join(root, 'docs'), { recursive: true })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`);
  return {
    missing: pages.filter((page) => !listed.includes(page)).sort(),
    empty: listed.filter((one) => one.startsWith('docs/') && !pages.includes(one)),
  };
}
