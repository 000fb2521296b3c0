// The samples of docs/examples as in their READMEs: every command, in order, by an unprivileged user, from an empty
// home. Free ports replace those of the pages.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { packagedExamples, pageShell } from '../../kit/pages/page-shell.js';
import { freePort } from '../../kit/programs/free-port.js';
import { needs } from '../../kit/programs/real-programs.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const samples = join(projectRoot, 'docs/examples');
const listens = (port: number): string => `(exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null`;

interface Sample {
  readonly ports: readonly number[];
  readonly options: { readonly skip?: string };
  /** The condition that the worker runs, by the command that starts it. */
  readonly settles: readonly (readonly [RegExp, string])[];
}

const played: Readonly<Record<string, Sample>> = {
  'dns-edge': {
    ports: [8470, 5470],
    options: {
      ...needs('dig', 'bind9-dnsutils'),
      ...needs('kresd', 'knot-resolver'),
      ...needs('bwrap', 'bubblewrap'),
    },
    settles: [[/kresd -n/, 'test -S $W/kresd/control/1']],
  },
  limits: { ports: [8471], options: needs('python3', 'python3'), settles: [] },
  access: { ports: [8472, 8473], options: needs('curl', 'curl'), settles: [] },
};

describe('the README of a sample', { concurrency: 2 }, () => {
  it('exists, and is tested here, for each sample', () => {
    const folders = readdirSync(samples, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    assert.deepEqual(folders.map(({ name }) => name).sort(), Object.keys(played).sort());
    for (const { name } of folders) assert.ok(existsSync(join(samples, name, 'README.md')), name);
  });

  for (const [name, { ports, options, settles }] of Object.entries(played)) {
    it(`leads an unprivileged user through ${name}, from an empty home`, options, async () => {
      using dir = tempDir();
      const moved: Record<string, string> = {};
      for (const port of ports) moved[String(port)] = String(await freePort());
      const server = Number(moved[String(ports[0])]);
      await using shell = pageShell(dir, {
        user: 'nobody',
        replacements: {
          ...packagedExamples,
          '/usr/lib/writ/bin/node': process.execPath,
          '/usr/lib/writ': projectRoot,
          // The test does not use the registry, because this project has the packages.
          'npm install yaml': `mkdir node_modules && ln -s ${projectRoot}/node_modules/yaml node_modules/yaml`,
          ...moved,
        },
        settles: [
          [/^writ serve/, listens(server)],
          [/^writ agent/, 'writ status --config agent.yaml >/dev/null 2>&1'],
          // The worker connects within five seconds.
          [/^writ pull .* --wait/, 'writ status --config agent.yaml --json | grep -q \'"confirmed":true\''],
          ...settles,
        ],
      });
      assert.match((await shell.type('id -u; ls -A ~ | grep -v "^.bin$"')).output, /^[1-9]\d*\s*$/);
      await shell.play(readFileSync(join(samples, name, 'README.md'), 'utf8'));
    });
  }
});
