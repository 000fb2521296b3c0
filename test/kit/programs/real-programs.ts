// Options of tests with a real program. In CI (WRIT_TEST_REQUIRE_REAL=1) a missing program fails the test; otherwise the test is
// skipped with the command that installs it.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { defaultPath } from '../../../src/platform/process/run-command.js';

/**
 * @param program name of the program, as `kresd`
 * @param debianPackage the package that has it
 * @returns options for node:test: empty when the program is here (or must be), else the reason to skip
 */
export function needs(program: string, debianPackage: string): { skip?: string } {
  const found = defaultPath.split(':').some((folder) => existsSync(join(folder, program)));
  if (found || process.env['WRIT_TEST_REQUIRE_REAL'] === '1') return {};
  return { skip: `${program} is not installed: apt-get install ${debianPackage}` };
}
