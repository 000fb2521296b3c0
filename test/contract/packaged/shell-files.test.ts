// The man pages and the completion of three shells, made from the table of commands: complete, and without a warning of groff.
// bash, zsh and fish themselves complete the lines.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { topicNames } from '../../../src/cli/console/help-topics.js';
import { commands } from '../../../src/cli/run.js';
import { errorCodes } from '../../../src/core/error-codes.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';
import { projectRoot } from '../../kit/sources/source-files.js';

/** @returns the completions of bash for a line that ends at the cursor */
function bashOffers(file: string, ...args: readonly string[]): string[] {
  const call = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _writ';
  const script = `source "$1"; shift; ${call}; printf "%s\\n" "\${COMPREPLY[@]}"`;
  const text = execFileSync('bash', ['--norc', '-c', script, 'bash', file, 'writ', ...args], {
    cwd: '/',
    encoding: 'utf8',
  });
  return text.split('\n').filter((line) => line !== '');
}

/** @returns the completions that zsh receives, one a line. The helpers of zsh need a terminal, so these helpers print. */
function zshOffers(file: string, ...args: readonly string[]): string {
  const helpers = `_describe() { print -l -- "\${(@P)2}" }; _arguments() { print -l -- "$@" };`;
  const call = `${helpers} file=$1; shift; words=("$@"); CURRENT=$#; source $file`;
  return execFileSync('zsh', ['-fc', call, 'zsh', file, 'writ', ...args], { encoding: 'utf8' });
}

const codes = Object.keys(errorCodes).filter((code) => code.startsWith('CHE'));

describe('the files for shells and man', longCase, () => {
  let made: TempDir;
  const text = (path: string): string => readFileSync(made.join(path), 'utf8');
  const bash = 'bash-completion/completions/writ';
  before(() => {
    made = tempDir();
    execFileSync(process.execPath, [join(projectRoot, 'scripts/make-shell-files.js'), made.join('.')]);
  });
  after(() => made[Symbol.dispose]());

  it('have a man page for each command, which names its flags and exit codes', () => {
    const pages = commands.map(({ name }) => `writ-${name.replace(' ', '-')}.1`);
    assert.deepEqual(readdirSync(made.join('man/man1')).sort(), ['writ.1', ...pages].sort());
    const page = text('man/man1/writ-publish.1');
    for (const part of ['.B \\-\\-exclude <glob>', '.SH EXAMPLES', '.SH EXIT STATUS', '.B 7']) {
      assert.ok(page.includes(part), part);
    }
    for (const { name } of commands)
      assert.ok(text('man/man1/writ.1').includes(`.B writ ${name.replaceAll('-', '\\-')}\n`));
  });

  it('are man pages that groff formats without a warning', needs('groff', 'groff'), () => {
    for (const page of readdirSync(made.join('man/man1'))) {
      const run = spawnSync('groff', ['-man', '-Tutf8', '-P-cbou', '-ww', made.join('man/man1', page)], {
        encoding: 'utf8',
      });
      assert.deepEqual([page, run.status, run.stderr], [page, 0, '']);
      assert.match(run.stdout, /NAME/);
    }
  });

  it('complete commands, subcommands, flags and topics in bash', needs('bash', 'bash'), () => {
    const offers = (...args: string[]): string[] => bashOffers(made.join(bash), ...args);
    assert.deepEqual(offers('pu'), ['publish', 'pull']);
    assert.deepEqual(offers('repo', ''), ['status', 'log', 'check', 'gc', 'export']);
    assert.deepEqual(offers('publish', '--exc'), ['--exclude']);
    assert.deepEqual(offers('repo', 'gc', '--ke'), ['--keep']);
    assert.deepEqual(offers('status', '--color', 'n'), ['never']);
    assert.deepEqual(offers('publish', '--keys', 'et'), ['etc'], 'files behind a flag with a value');
    assert.deepEqual(offers('fleet', 'token', ''), ['create', 'list', 'revoke'], 'in place of files');
    assert.deepEqual(offers('refusals', 'f'), ['forget']);
    for (const topic of topicNames) assert.deepEqual(offers('help', topic), [topic]);
    assert.deepEqual(offers('help', 'repo', 'st'), ['status']);
    assert.deepEqual(offers('help', 'CHE'), codes, 'error codes');
    assert.deepEqual(offers('help', 'CHECK_FAILED', ''), [], 'one is all it takes');
  });

  it('offer every command in each shell', () => {
    for (const path of [bash, 'zsh/vendor-completions/_writ', 'fish/vendor_completions.d/writ.fish']) {
      const parts = new Set(text(path).split(/[^a-z-]+/));
      for (const { name } of commands)
        for (const part of name.split(' ')) assert.ok(parts.has(part), `${path}: ${name}`);
    }
  });

  it('complete commands, subcommands and flags in zsh', needs('zsh', 'zsh'), () => {
    const offers = (...args: string[]): string =>
      zshOffers(made.join('zsh/vendor-completions/_writ'), ...args);
    assert.equal(offers('help', 'repo', ''), 'status\nlog\ncheck\ngc\nexport\n');
    const helped = offers('help', 'CHE').split('\n');
    assert.deepEqual(
      helped.filter((line) => line.startsWith('CHE')),
      codes,
    );
    assert.match(offers(''), /^publish:sign a directory/m);
    assert.equal(offers('repo', ''), 'status\nlog\ncheck\ngc\nexport\n');
    assert.match(offers('publish', '--'), /^\*--exclude\[leave these files .*\]:value:/m);
    assert.match(offers('repo', 'gc', '--'), /^\*--keep\[/m);
    assert.match(offers('fleet', 'token', ''), /^3:word:\(create list revoke\)$/m);
  });

  it('offer flags, and error codes after help, in fish', needs('fish', 'fish'), () => {
    const offers = (line: string): string[] => {
      const script = `source ${made.join('fish/vendor_completions.d/writ.fish')}; complete -C '${line}'`;
      return execFileSync('fish', ['-c', script], { encoding: 'utf8' }).trim().split('\n');
    };
    assert.match(offers('writ publish --exc')[0] ?? '', /^--exclude/);
    assert.deepEqual(offers('writ fleet token '), ['create', 'list', 'revoke']);
    assert.deepEqual(offers('writ refusals '), ['forget']);
    assert.deepEqual(offers('writ help CHE').sort(), codes.toSorted());
  });
});
