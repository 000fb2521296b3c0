// Reads the sources as text: their imports, and their code without comments. Owns no rule; layers and confined have them.
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/** Where the sources are, seen from the compiled tests. */
export const projectRoot = join(import.meta.dirname, '..', '..', '..', '..');

export interface SourceFile {
  /** Below src, as `core/names.ts`. */
  readonly path: string;
  readonly text: string;
  /** Without comments and with the insides of plain strings blanked, so that only code is left. */
  readonly code: string;
  /** As written, and for relative ones the path below src, as `core/names.ts`. */
  readonly imports: readonly ImportLine[];
}

export interface ImportLine {
  readonly specifier: string;
  /** Path below src of a file of ours; undefined for packages and builtins. */
  readonly file?: string;
  /** What stands between `import` and `from`; empty for the dynamic and the bare form. */
  readonly names: string;
}

/** Every TypeScript file below src, sorted by path. */
export function readSources(): readonly SourceFile[] {
  const root = join(projectRoot, 'src');
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .sort();
  const all = new Set(paths);
  return paths.map((path) => sourceFile(path, readFileSync(join(root, path), 'utf8'), all));
}

/**
 * @param path below src; decides what relative imports mean
 * @param all paths that there are: `x.js` is made of x.tsx where that is one of them
 */
export function sourceFile(path: string, text: string, all: ReadonlySet<string> = new Set()): SourceFile {
  const bare = withoutComments(text);
  const code = bare.replace(lexeme, (whole, _comment, plain) => (plain === undefined ? whole : "''"));
  const imports = importsOf(path, bare).map((line) =>
    line.file !== undefined && all.has(`${line.file}x`) ? { ...line, file: `${line.file}x` } : line,
  );
  return { path, text, code, imports };
}

/** @returns the text with a space in the place of each comment */
export function withoutComments(text: string): string {
  return text.replace(lexeme, (all, comment) => (comment === undefined ? all : ' '));
}

/** A comment (1), a plain string (2), or a template, which is kept: it holds code. */
const lexeme = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|`(?:\\.|[^`\\])*`/g;

const importForms = [
  /\b(?:import|export)\s+([^'";()]*?)\s*\bfrom\s*['"]([^'"]+)['"]/g,
  /\bimport\s*()['"]([^'"]+)['"]/g,
  /\bimport\s*\(()\s*['"]([^'"]+)['"]/g,
];

function importsOf(path: string, text: string): ImportLine[] {
  return importForms.flatMap((form) =>
    [...text.matchAll(form)].map(([, names = '', specifier = '']) => {
      const file = posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
      return specifier.startsWith('.') ? { specifier, names, file } : { specifier, names };
    }),
  );
}

/** Name of the package that a specifier means, as `@fastify/static` for `@fastify/static/x`, `yaml` for the joined `#yaml`. */
export function packageOf(specifier: string): string {
  return specifier
    .replace(/^#/, '')
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
