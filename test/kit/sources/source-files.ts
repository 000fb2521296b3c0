// Reads the sources as text: their imports, and their code without comments. The tests of layers and of confined imports have
// the rules.
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/** Root of the project, relative to the compiled tests. */
export const projectRoot = join(import.meta.dirname, '..', '..', '..', '..');

export interface SourceFile {
  /** Path below src, as `core/names.ts`. */
  readonly path: string;
  readonly text: string;
  /** Code without comments, with the content of plain strings blanked. */
  readonly code: string;
  /** Specifier, and for relative ones the path below src, as `core/names.ts`. */
  readonly imports: readonly ImportLine[];
}

export interface ImportLine {
  readonly specifier: string;
  /** Path below src; undefined for packages and builtins. */
  readonly file?: string;
  /** Text between `import` and `from`; empty for a dynamic or bare import. */
  readonly names: string;
}

/** @returns each TypeScript file below src, sorted by path */
export function readSources(): readonly SourceFile[] {
  const root = join(projectRoot, 'src');
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .sort();
  const all = new Set(paths);
  return paths.map((path) => sourceFile(path, readFileSync(join(root, path), 'utf8'), all));
}

/**
 * @param path below src, to which relative imports are resolved
 * @param all existing paths: `x.js` is built from x.tsx if that is one of them
 */
export function sourceFile(path: string, text: string, all: ReadonlySet<string> = new Set()): SourceFile {
  const bare = withoutComments(text);
  const code = bare.replace(lexeme, (whole, _comment, plain) => (plain === undefined ? whole : "''"));
  const imports = importsOf(path, bare).map((line) =>
    line.file !== undefined && all.has(`${line.file}x`) ? { ...line, file: `${line.file}x` } : line,
  );
  return { path, text, code, imports };
}

/** @returns the text with a space instead of each comment */
export function withoutComments(text: string): string {
  return text.replace(lexeme, (all, comment) => (comment === undefined ? all : ' '));
}

/** A comment (1), a plain string (2), or a template, which is kept because it contains code. */
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

/** @returns the package name of a specifier, as `@fastify/static` for `@fastify/static/x`, `yaml` for the bundled `#yaml` */
export function packageOf(specifier: string): string {
  return specifier
    .replace(/^#/, '')
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
