// Checks the places of secret keys: never in a repository, because a repository is copied and served completely, and no
// repository in a key directory. Compares real paths; reads no key.
import * as fs from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { WritError } from '../../core/errors.js';

/** Files that show a served directory; a mirror may lack all but the newest. */
const repositoryFiles = ['metadata/timestamp.json', 'metadata/1.root.json'];
const secretOfRole = /^(root|targets|snapshot|timestamp)(-[0-9]{1,3})?\.key$/;

/** Checks that a key or a key directory is not in a repository. @throws WritError KEYS_IN_REPOSITORY */
export function requireKeyPlace(path: string): void {
  const repository = findAncestor(path, isRepository);
  if (repository !== undefined) throw servedKeys(path, repository);
}

/** Like requireKeyPlace, for a repository that does not exist yet. @throws WritError KEYS_IN_REPOSITORY */
export function requireApart(repository: string, keysDirectory: string): void {
  requireKeyPlace(keysDirectory);
  const [served, secret] = [realPlace(repository), realPlace(keysDirectory)];
  if (findAncestor(keysDirectory, (directory) => directory === served) !== undefined)
    throw servedKeys(keysDirectory, repository);
  const keys = findAncestor(repository, (directory) => directory === secret || containsKeys(directory));
  if (keys === undefined) return;
  throw new WritError('KEYS_IN_REPOSITORY', `${repository} would be inside the key directory ${keys}`, {
    facts: { repository, keys },
    hint: 'Choose a directory for the repository that contains no keys and is not inside a key directory.',
  });
}

interface Apart {
  readonly keysDirectory: string;
  readonly repository: string;
  /** Other secrets, such as a file with a passphrase. */
  readonly secretFiles?: readonly string[] | undefined;
}

/**
 * Checks that SOURCE is separate from the keys that sign it, also through links: a SOURCE that contains the keys would be
 * signed and published with them. Paths of --exclude count too, because the next release may be published without it.
 * @throws WritError SOURCE_NOT_APART
 */
export function requireSourceApart(
  source: string,
  { keysDirectory, repository, secretFiles = [] }: Apart,
): void {
  const published = realPlace(source);
  const places = [
    { what: 'the key directory', path: keysDirectory },
    { what: 'the repository', path: repository },
    ...secretFiles.map((path) => ({ what: 'the file with the passphrase', path })),
  ];
  for (const { what, path } of places) {
    const place = realPlace(path);
    const isBelow = findAncestor(path, (directory) => directory === published) !== undefined;
    const isAbove = findAncestor(source, (directory) => directory === place) !== undefined;
    if (!isBelow && !isAbove) continue;
    const relation = isBelow && isAbove ? 'is' : isBelow ? 'contains' : 'is inside';
    throw new WritError('SOURCE_NOT_APART', `${source} ${relation} ${what} ${path}`, {
      facts: { source, path },
    });
  }
}

function servedKeys(keys: string, repository: string): WritError {
  const message = `secret keys in ${keys} would be served with the repository ${repository}`;
  return new WritError('KEYS_IN_REPOSITORY', message, { facts: { repository, keys } });
}

function isRepository(directory: string): boolean {
  return repositoryFiles.some((name) => fs.existsSync(join(directory, name)));
}

function containsKeys(directory: string): boolean {
  try {
    return fs.readdirSync(directory).some((name) => secretOfRole.test(name));
  } catch {
    // A directory that is missing, or that this user cannot list, shows no keys.
    return false;
  }
}

function findAncestor(path: string, isMatch: (directory: string) => boolean): string | undefined {
  for (let directory = realPlace(path); ; directory = dirname(directory)) {
    if (isMatch(directory)) return directory;
    if (directory === dirname(directory)) return undefined;
  }
}

/** @returns the path without links, also of a missing path, because a repository behind a link is served from its target */
function realPlace(path: string): string {
  const absolute = resolve(path);
  if (absolute === dirname(absolute)) return absolute;
  try {
    return fs.realpathSync(absolute);
  } catch {
    return join(realPlace(dirname(absolute)), basename(absolute));
  }
}
