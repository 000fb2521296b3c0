import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import { projectRoot } from '../kit/sources/source-files.js';

const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');
const page = read('docs/json.md');
const filesIn = (folder: string): string[] =>
  readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));
const commands = filesIn('src/cli/commands');

/** The row of the page that has this type. */
function rowOf(type: string): string {
  return page.split('\n').find((line) => line.startsWith('| `') && line.includes(`\`${type}\``)) ?? '';
}

/** The names of an exported interface's own members. */
function membersOf(path: string, name: string): string[] {
  const body = new RegExp(`export interface ${name} \\{\\n([\\s\\S]*?)\\n\\}`).exec(read(path))?.[1] ?? '';
  return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map((match) => match[1] ?? '');
}

describe('docs/json.md', () => {
  it('has the type of every command', () => {
    const missing = commands
      .map((name) => basename(name).replace('.ts', '.result'))
      .filter((type) => rowOf(type) === '');
    assert.deepEqual(missing, []);
  });

  it('has every outcome that a command names', () => {
    // Includes results that commands share, for example of each command that changes the list of releases.
    const sources = [...commands, ...filesIn('src/cli/repository')].map(read);
    const named = sources.flatMap((text) =>
      [...text.matchAll(/outcome: '([a-z-]+)'/g)].map((match) => match[1] ?? ''),
    );
    const missing = named.filter(
      (outcome) => !outcome.startsWith('would-') && !page.includes(`\`${outcome}\``),
    );
    assert.deepEqual(missing, []);
  });

  for (const [path, name, type] of [
    ['src/core/status/status.ts', 'StatusReport', 'status.result'],
    ['src/core/cycle/cycle-report.ts', 'CycleResult', 'pull.result'],
    ['src/core/status/verify-report.ts', 'VerifyResult', 'verify.result'],
    ['src/agent/control/diff-policy.ts', 'PolicyDifference', 'diff.result'],
    ['src/core/protocol/control-protocol.ts', 'ResumeResult', 'resume.result'],
    ['src/core/protocol/control-protocol.ts', 'RefusalsResult', 'refusals.result'],
    ['src/core/protocol/control-protocol.ts', 'PauseResult', 'pause.result'],
  ] as const) {
    it(`has the members of ${type}`, () => {
      const common = ['schema', 'type', 'outcome', 'exitCode'];
      const members = membersOf(path, name).filter((member) => !common.includes(member));
      assert.notDeepEqual(members, []);
      const row = rowOf(type);
      assert.deepEqual(
        members.filter((member) => !row.includes(`\`${member}\``)),
        [],
      );
    });
  }
});
