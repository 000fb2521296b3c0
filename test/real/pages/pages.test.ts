// docs/coming-from.md and docs/install.md: an unprivileged user runs each command, and each configuration in
// them is accepted by the agent.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { loadConfig } from '../../../src/agent/config/load-config.js';
import { driverKinds } from '../../../src/workers/registry.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { blocksOf, sectionOf } from '../../kit/pages/page-commands.js';
import { pageShell } from '../../kit/pages/page-shell.js';
import { needs } from '../../kit/programs/real-programs.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const page = (name: string): string => readFileSync(join(projectRoot, 'docs', name), 'utf8');
const comingFrom = page('coming-from.md');
const intro = comingFrom.slice(0, comingFrom.indexOf('\n## '));

/** Shell that makes the earlier installation of the reader, by the section about it. */
const had: Readonly<Record<string, string>> = {
  'OPA bundles':
    'mkdir b && echo "package a" > b/a.rego && echo "{}" > b/.signatures.json && tar -C b -czf bundle.tar.gz .',
  'git-sync':
    'git init -q checkout && cd checkout && echo one > page && git add page && git -c user.name=a -c user.email=a@b.c commit -qm one && cd ..',
  freshclam: 'mkdir clamav && echo x > clamav/main.cvd && echo x > clamav/freshclam.dat',
  'rsync and cron': 'true',
  CFEngine: 'mkdir masterfiles && echo "body common control {}" > masterfiles/promises.cf',
  Ansible: 'mkdir rendered && echo one > rendered/rules',
};

describe('docs/coming-from.md', () => {
  it('has a section for each tool that this test covers', () => {
    const sections = [...comingFrom.matchAll(/^## (.*)$/gm)].map(([, name]) => name);
    assert.deepEqual(sections, Object.keys(had));
  });

  it('publishes an existing tree of each tool', needs('git', 'git'), async () => {
    using dir = tempDir();
    await using shell = pageShell(dir, { user: 'nobody' });
    const ok = async (text: string): Promise<void> => {
      const { exitCode, output } = await shell.type(text);
      assert.equal(exitCode, 0, `${text}\n${output}`);
    };
    await ok('mkdir policy && echo allow all > policy/rules');
    await shell.play(intro);
    for (const [heading, before] of Object.entries(had)) {
      await ok(before);
      await shell.play(sectionOf(comingFrom, heading));
    }
    const listed = await shell.type('writ inspect repo');
    for (const bundle of ['authz', 'site', 'clamav', 'rules', 'cfengine', 'edge'])
      assert.match(listed.output, new RegExp(`\\b${bundle}\\b`));
  });
});

function accepted(text: string): ReturnType<typeof loadConfig>['config'] {
  using dir = tempDir();
  const path = dir.join('agent.yaml');
  const repository = text.includes('repository:') ? '' : 'repository: https://policy.example.net/\n';
  writeFileSync(path, `${repository}${text}`);
  return loadConfig(path).config;
}

describe('the configurations of a page', () => {
  for (const name of ['install.md', 'coming-from.md']) {
    it(`are accepted by the agent: ${name}`, () => {
      const blocks = blocksOf(page(name), 'yaml');
      assert.ok(blocks.length >= 2);
      for (const block of blocks) assert.ok(accepted(block).bundles.length > 0, block);
    });
  }

  it('have one example for each kind of worker, and a minimal one of three lines', () => {
    const [smallest = '', kinds = ''] = blocksOf(page('install.md'), 'yaml');
    assert.equal(smallest.trimEnd().split('\n').length, 3);
    const { workers } = parse(kinds) as {
      workers: readonly { reset?: Record<string, unknown>; load?: unknown }[];
    };
    const shown = workers.flatMap(({ reset }) => (reset === undefined ? [] : [Object.keys(reset)[0]]));
    assert.deepEqual(shown.sort(), driverKinds.map(({ name }) => name).sort());
    assert.ok(workers.some(({ load }) => load !== undefined));
  });
});
