// Renames symbols, files and tests on the syntax tree, with everything that names them: imports, mutations, and the paths in
// documents, scripts and contract tests. Each line of the list (a file, or `-` for stdin) is one change:
//   symbol src/a/b.ts oldName newName        a declaration of the file; `b.ts:12` where several have the name
//   test test/unit/a.test.ts "old name" "new name"
//   move src/a/b.ts src/a/c.ts               after all others
// Refuses the whole list, and writes nothing, when a declaration is missing or ambiguous, when a new name exists in the file, or
// when a mutation would not occur exactly once any more. Prints where the old name is still in comments and documents.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Node, Project, SyntaxKind } from 'ts-morph';
import { readMutations, writeMutations } from './mutations-file.js';

const actions = { symbol: renameSymbol, move: moveFile, test: renameTest };

/**
 * @param {string} root of the project
 * @param {string} list one change a line
 * @returns {{ changed: number, left: string[] }} how many sources changed, and `path:line: text` of old names that are left
 * @throws {Error} with the line of the list that cannot be done; nothing is written then
 */
export function rename(root, list) {
  const project = new Project({ tsConfigFilePath: join(root, 'tsconfig.json') });
  const world = { root, project, mutations: readMutations(root), texts: new Map(), oldNames: [] };
  let hasMoved = false;
  for (const [index, line] of list.split('\n').entries()) {
    const [action, ...args] = splitLine(line);
    if (action === undefined) continue;
    const act = actions[action];
    if (act === undefined || args.length !== (action === 'move' ? 2 : 3))
      throw new Error(`line ${index + 1}: not a change: ${line}`);
    // A rename after a move reads the old file again, which is still on the disk.
    if (action !== 'move' && hasMoved) throw new Error(`line ${index + 1}: moves come last`);
    hasMoved ||= action === 'move';
    try {
      act(world, ...args);
    } catch (error) {
      throw new Error(`line ${index + 1} (${line}): ${error.message}`);
    }
  }
  requireMutations(world);
  const changed = project.getSourceFiles().filter((file) => !file.isSaved()).length;
  project.saveSync();
  for (const [path, text] of world.texts) writeFileSync(join(root, path), text);
  writeMutations(root, world.mutations);
  return { changed, left: world.oldNames.flatMap((name) => occurrencesOf(root, name)) };
}

/** A word, or a text in double quotes. */
function splitLine(line) {
  return [...line.replace(/#.*$/, '').matchAll(/"((?:\\.|[^"\\])*)"|\S+/g)].map(([whole, text]) =>
    text === undefined ? whole : text.replace(/\\(.)/g, '$1'),
  );
}

function renameSymbol({ root, project, mutations, oldNames }, place, oldName, newName) {
  const [path, line] = place.split(':');
  const file = project.getSourceFileOrThrow(join(root, path));
  const names = declaredNames(file, oldName).filter(
    (name) => line === undefined || name.getStartLineNumber() === Number(line),
  );
  const [name, ...others] = names;
  if (name === undefined) throw new Error(`${place} declares no ${oldName}`);
  if (others.length > 0)
    throw new Error(
      `declared in lines ${names.map((one) => one.getStartLineNumber()).join(', ')}: choose one`,
    );
  const scope = scopeOf(name);
  if (declaredNames(file, newName).some((other) => scopeOf(other) === scope))
    throw new Error(`${path} declares ${newName} already`);
  const users = new Set(
    [name, ...name.findReferencesAsNodes()].map((one) => relativePath(root, one.getSourceFile())),
  );
  // A shorthand property keeps its variable: `{ oldName }` becomes `{ newName: oldName }`.
  name.rename(newName, { usePrefixAndSuffixText: Node.isPropertySignature(name.getParent()) });
  const pattern = new RegExp(`(?<![\\w$])${oldName}(?![\\w$])`, 'g');
  for (const one of mutations.filter(({ file: source }) => users.has(source))) {
    const source = project.getSourceFileOrThrow(join(root, one.file));
    // The old name may also be another symbol of that source: its code decides.
    const before = one.before.replace(pattern, newName);
    if (source.getFullText().split(before).length === 2) one.before = before;
    if (one.before === before && !hasIdentifier(source, oldName))
      one.after = one.after.replace(pattern, newName);
  }
  oldNames.push(oldName);
}

function hasIdentifier(source, text) {
  return source.getDescendantsOfKind(SyntaxKind.Identifier).some((one) => one.getText() === text);
}

function declaredNames(file, text) {
  return file
    .getDescendantsOfKind(SyntaxKind.Identifier)
    .filter((one) => one.getText() === text && isDeclaration(one));
}

/** The members of one type, or the statements of one block, have different names. */
function scopeOf(identifier) {
  const declaration = identifier.getParentOrThrow();
  return declaration.getFirstAncestor(
    (node) =>
      Node.isBlock(node) ||
      Node.isSourceFile(node) ||
      Node.isTypeElementMembered(node) ||
      Node.isClassDeclaration(node),
  );
}

function isDeclaration(identifier) {
  const parent = identifier.getParentOrThrow();
  if (
    Node.isImportSpecifier(parent) ||
    Node.isExportSpecifier(parent) ||
    Node.isShorthandPropertyAssignment(parent)
  )
    return false;
  if (Node.isBindingElement(parent))
    return parent.getPropertyNameNode() !== undefined && parent.getNameNode() === identifier;
  return Node.hasName(parent) ? parent.getNameNode() === identifier : false;
}

function moveFile({ root, project, mutations, texts, oldNames }, from, to) {
  const file = project.getSourceFileOrThrow(join(root, from));
  if (existsSync(join(root, to))) throw new Error(`${to} exists already`);
  file.move(join(root, to));
  for (const source of project.getSourceFiles().filter((one) => !one.isSaved())) completeImports(source);
  for (const one of mutations)
    for (const member of ['file', 'test']) if (one[member] === from) one[member] = to;
  // Documents and tables write a path with its folder, below the project or below src; JavaScript names the compiled file.
  const [, source = '', extension = ''] = /^(.+)\.(tsx?)$/.exec(from.replace(/^src\//, '')) ?? [];
  const target = to.replace(/^src\//, '').replace(/\.tsx?$/, '');
  const pattern = new RegExp(
    `(?<![\\w-])((?:[\\w./-]*/)?)${escaped(source)}(?=\\.(?:${extension}|js)(?![\\w-]))`,
    'g',
  );
  const renamePaths = (text) =>
    text.replace(pattern, (path, above) =>
      /^$|(?:^|\/)(?:src|dist|\.\.?)\/$/.test(above) ? `${above}${target}` : path,
    );
  for (const path of trackedTexts(root)) {
    const text = texts.get(path) ?? readFileSync(join(root, path), 'utf8');
    const renamed = renamePaths(text);
    if (renamed !== text) texts.set(path, renamed);
  }
  for (const other of project.getSourceFiles().filter((one) => !one.getFilePath().includes('/src/')))
    for (const literal of other.getDescendantsOfKind(SyntaxKind.StringLiteral)) {
      const text = literal.getLiteralText();
      const isImport = Node.isImportDeclaration(literal.getParent());
      const renamed = renamePaths(text);
      if (!isImport && renamed !== text) literal.setLiteralValue(renamed);
    }
  oldNames.push(from.split('/').at(-1));
}

/** A move writes imports without the extension that ECMAScript modules need. */
function completeImports(source) {
  for (const literal of source.getImportStringLiterals())
    if (/^\.\.?\//.test(literal.getLiteralText()) && !/\.\w+$/.test(literal.getLiteralText()))
      literal.setLiteralValue(`${literal.getLiteralText()}.js`);
}

function renameTest({ root, project, mutations, texts }, path, oldName, newName) {
  const file = project.getSourceFileOrThrow(join(root, path));
  const [literal, ...others] = [SyntaxKind.StringLiteral, SyntaxKind.NoSubstitutionTemplateLiteral]
    .flatMap((kind) => file.getDescendantsOfKind(kind))
    .filter((one) => one.getLiteralText() === oldName);
  if (literal === undefined || others.length > 0)
    throw new Error(`${path} has the text ${1 + others.length - (literal === undefined)} times`);
  literal.setLiteralValue(newName);
  // A mutation may name a part of the test.
  for (const one of mutations) if (one.test === path && oldName.includes(one.name)) one.name = newName;
  for (const page of trackedTexts(root).filter((name) => name.endsWith('.md'))) {
    const text = texts.get(page) ?? readFileSync(join(root, page), 'utf8');
    if (text.includes(`"${oldName}"`)) texts.set(page, text.replaceAll(`"${oldName}"`, `"${newName}"`));
  }
}

/** The same rule as test/contract/mutations.test.ts, before anything is written. */
function requireMutations({ root, project, mutations }) {
  const textOf = (path) => project.getSourceFile(join(root, path))?.getFullText() ?? '';
  const wrong = mutations.filter(
    ({ file, before, test, name }) => textOf(file).split(before).length !== 2 || !textOf(test).includes(name),
  );
  if (wrong.length > 0)
    throw new Error(`these mutations would not apply any more: ${wrong.map(({ id }) => id).join(', ')}`);
}

/** Documents, scripts and tables of contract tests; sources are the syntax tree's. */
function trackedTexts(root) {
  const paths = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0');
  return paths.filter(
    (path) =>
      /\.(?:md|js)$/.test(path) &&
      path !== 'CHANGELOG.md' &&
      !path.startsWith('test/golden/') &&
      existsSync(join(root, path)),
  );
}

/** Comments and documents keep the old name: a person writes the sentence again. */
function occurrencesOf(root, name) {
  // A word of English is in sentences that mean something else.
  if (/^[a-z]+$/.test(name)) return [];
  const argv = ['grep', '-nwF', '--untracked', '--', name, '--', '*.ts', '*.tsx', '*.js', '*.md'];
  try {
    const lines = execFileSync('git', argv, { cwd: root, encoding: 'utf8' }).trimEnd().split('\n');
    // The code of TypeScript is renamed: another symbol has the name there.
    return lines.filter((line) => !/^[^:]+\.tsx?:/.test(line) || /^[^:]+:\d+:\s*(?:\/\/|\/?\*)/.test(line));
  } catch {
    // git grep ends with 1 when it finds nothing.
    return [];
  }
}

function relativePath(root, file) {
  return file.getFilePath().slice(resolve(root).length + 1);
}

function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [list] = process.argv.slice(2);
  if (list === undefined) {
    console.error(
      'node scripts/rename.js LIST: a file with one change a line, or -; its header has the form',
    );
    process.exit(2);
  }
  const root = fileURLToPath(new URL('..', import.meta.url));
  try {
    const { changed, left } = rename(root, readFileSync(list === '-' ? 0 : list, 'utf8'));
    console.log(`${changed} sources changed`);
    if (left.length > 0) console.log(`The old names are still here:\n${left.join('\n')}`);
  } catch (error) {
    console.error(`Nothing was changed: ${error.message}`);
    process.exit(1);
  }
}
