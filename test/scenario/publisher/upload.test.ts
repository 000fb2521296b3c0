// The script of docs/server.md that uploads a publish to another machine, with real rsync into a directory: what a host sees after
// each line of it, and after one that fails. `writ help upload` shows the same script.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { topicText } from '../../../src/cli/console/help-topics.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { blocksOf, sectionOf } from '../../kit/pages/page-commands.js';
import { needs } from '../../kit/programs/real-programs.js';
import { seenByHost } from '../../kit/repository/published-tree.js';
import { sampleRepository } from '../../kit/repository/sample-repository.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const served = 'server:/srv/www/policy/';
const page = fs.readFileSync(join(projectRoot, 'docs/server.md'), 'utf8');
const [once = ''] = blocksOf(sectionOf(page, 'Publish on one machine, serve from another'));
const script = /^cat > upload <<'END'\n([\s\S]*?)^END$/m.exec(once)?.[1]?.trimEnd().split('\n') ?? [];

function sh(dir: TempDir, lines: readonly string[], to = 'www/'): number | null {
  const text = lines.map((line) => line.replace(served, to)).join('\n');
  return spawnSync('sh', ['-e', '-c', text], { cwd: dir.path }).status;
}

describe('the script of docs/server.md that uploads a publish', () => {
  it('is the script of writ help upload', () => {
    assert.equal(script[0], '#!/bin/sh -e');
    assert.equal(script.filter((line) => line.includes(served)).length, 2);
    const shown = topicText('upload') ?? '';
    assert.ok(shown.includes(script.map((line) => `  ${line}\n`).join('')), shown);
  });

  it('shows hosts the new release after its last line only, whole, and ends with an error before it', {
    ...needs('rsync', 'rsync'),
    ...longCase,
  }, async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir);
    fs.mkdirSync(dir.join('www'));
    const www = { ...repository, url: pathToFileURL(dir.join('www')).href };
    const serialSeen = async () => (await seenByHost(www)).release?.serial;
    await repository.publish({ 'block.rpz': 'one\n' });
    assert.equal(sh(dir, script), 0);
    assert.equal(await serialSeen(), 1);

    await repository.publish({ 'block.rpz': 'two\n' });
    assert.equal(sh(dir, script.slice(0, -1)), 0);
    assert.equal(await serialSeen(), 1);
    const last = script.at(-1) ?? '';
    assert.notEqual(
      sh(dir, [...script.slice(0, -1).map((line) => line.replace(served, 'no/such/')), last]),
      0,
    );
    assert.equal(await serialSeen(), 1);
    assert.equal(sh(dir, script), 0);
    assert.equal(await serialSeen(), 2);

    // Another publish comes between the lines: what is uploaded is the one before it, with all of its files.
    await repository.publish({ 'block.rpz': 'three\n' });
    assert.equal(sh(dir, script.slice(0, -1)), 0);
    await repository.publish({ 'block.rpz': 'four\n' });
    assert.equal(sh(dir, [last]), 0);
    assert.equal(await serialSeen(), 3);
  });
});
