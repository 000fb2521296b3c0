// cf-agent, which runs once after each swap and writes two files with the version.
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon, Stage } from '../parts/daemon.js';
import { joinVersions } from '../parts/processes.js';

function policy({ dir }: Stage, version: string, lastFile = `${dir}/last`): string {
  const file = (path: string): string =>
    `    "${path}" create => "true", edit_defaults => whole, edit_line => says("${version}");\n`;
  return `body common control { bundlesequence => { "main" }; }
body edit_defaults whole { empty_file_before_editing => "true"; }
bundle edit_line says(word) { insert_lines: "$(word)"; "policy @writ.serial@"; }
bundle agent main
{
  files:
${file(`${dir}/first`)}${file(lastFile)}}
`;
}

export const cfengine: Daemon = {
  name: 'cfengine',
  packages: ['cfengine3'],
  programs: ['cf-agent', 'cf-promises'],
  process: 'none',
  stamps: ['promises.cf'],
  good: (version, stage) => ({ 'promises.cf': policy(stage, version) }),
  bad: (version, stage) => ({ 'promises.cf': `${policy(stage, version)}bundle agent {\n` }),
  // A promise that fails, because no file can exist there.
  half: (version, stage) => ({ 'promises.cf': policy(stage, version, '/proc/nowhere/last') }),
  empty: async (instance) => void (await instance.control?.()),
  open: ({ dir }) => {
    const files = [join(dir, 'first'), join(dir, 'last')];
    const says = (path: string): string | undefined =>
      existsSync(path) ? readFileSync(path, 'utf8').split('\n')[0] : undefined;
    return {
      places: [
        ['/var/lib/cfengine3', join(dir, 'work')],
        ['/var/lib/site', dir],
      ],
      prepare: () => {
        mkdirSync(join(dir, 'work/bin'), { recursive: true });
        // cf-agent expects its own programs there, as in Debian's package.
        symlinkSync('/usr/bin/cf-promises', join(dir, 'work/bin/cf-promises'));
      },
      start: async () => undefined,
      kill: async () => undefined,
      stopAndGo: () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
      control: async () => {
        for (const path of files) rmSync(path);
        return undefined;
      },
      ask: async () => joinVersions(files.map(says)),
    };
  },
};
