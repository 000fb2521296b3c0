// The scenarios: a bash file for each in the source folder `scenarios`, with its requirements in its first comments. Owns the
// list and the selection; runs none.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The output form of the commands: each command of the `json` form gets `--json`. */
export type Form = 'human' | 'json';

export interface Scenario {
  readonly name: string;
  readonly form: Form;
  readonly script: string;
  /** Runs once with the first checkout; both runs start from a copy of the result. */
  readonly preparation?: string;
}

const folder = join(import.meta.dirname, '..', '..', '..', 'test', 'behaviour', 'scenarios');
/** Functions that every scenario calls. */
export const library: string = join(folder, 'library.sh');
/** Creates the keys and the repository that all scenarios start from. */
export const common: string = join(folder, 'common.prepare.sh');

/** @param part of the names to select @returns each scenario in each of its forms, the longest first */
export function listScenarios(part: string): readonly Scenario[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.scenario.sh') && file.includes(part))
    .map((file) => ({ file, text: readFileSync(join(folder, file), 'utf8') }))
    .sort((a, b) => b.text.length - a.text.length)
    .flatMap(({ file, text }) => formsOf(text).map((form) => scenarioOf(file, form)))
    .sort((a, b) => Number(b.preparation !== undefined) - Number(a.preparation !== undefined));
}

function scenarioOf(file: string, form: Form): Scenario {
  const name = file.slice(0, -'.scenario.sh'.length);
  const preparation = join(folder, `${name}.prepare.sh`);
  const prepared = existsSync(preparation) ? { preparation } : {};
  return { name: `${name}-${form}`, form, script: join(folder, file), ...prepared };
}

/** The forms of a scenario: `# form: human` excludes `json`, for commands without `--json`. */
function formsOf(text: string): readonly Form[] {
  return /^# form: human$/m.test(text) ? ['human'] : ['human', 'json'];
}
