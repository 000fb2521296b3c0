// The stories: one bash file each, in the folder `stories` of the sources, with what it needs in its first comments.
// Owns the list and how a story is chosen; never plays one.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** How its commands answer: every command of the `json` form gets `--json`. */
export type Form = 'human' | 'json';

export interface Story {
  readonly name: string;
  readonly form: Form;
  readonly script: string;
  /** Played once, by the first checkout; both start from a copy of what it leaves. */
  readonly preparation?: string;
}

const folder = join(import.meta.dirname, '..', '..', '..', 'test', 'behaviour', 'stories');
/** Functions that every story calls. */
export const library: string = join(folder, 'library.sh');
/** Keys and a repository, made once for all stories. */
export const common: string = join(folder, 'common.prepare.sh');

/** @param part of the names that are wanted. @returns each story in each of its forms, what takes longest first */
export function listStories(part: string): readonly Story[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.story.sh') && file.includes(part))
    .map((file) => ({ file, text: readFileSync(join(folder, file), 'utf8') }))
    .sort((a, b) => b.text.length - a.text.length)
    .flatMap(({ file, text }) => formsOf(text).map((form) => storyOf(file, form)))
    .sort((a, b) => Number(b.preparation !== undefined) - Number(a.preparation !== undefined));
}

function storyOf(file: string, form: Form): Story {
  const name = file.slice(0, -'.story.sh'.length);
  const preparation = join(folder, `${name}.prepare.sh`);
  const prepared = existsSync(preparation) ? { preparation } : {};
  return { name: `${name}-${form}`, form, script: join(folder, file), ...prepared };
}

/** A story whose commands have no `--json` says `# form: human`. */
function formsOf(text: string): readonly Form[] {
  return /^# form: human$/m.test(text) ? ['human'] : ['human', 'json'];
}
