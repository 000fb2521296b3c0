// Where secret keys may lie: never in a repository, which is copied and served whole, and no repository in a directory of
// keys. Looks at names by their real paths; reads no key.
import * as fs from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { WritError } from '../../core/errors.js';

/** What a served directory has; a mirror may lack all but the newest. */
const signsOfRepository = ['metadata/timestamp.json', 'metadata/1.root.json'];
const secretOfRole = /^(root|targets|snapshot|timestamp)(-[0-9]{1,3})?\.key$/;

/** Holds the place of a key, or of a directory of keys, to be in no repository. @throws WritError KEYS_IN_REPOSITORY */
export function requireKeyPlace(path: string): void {
  const repository = nearestAbove(path, isRepository);
  if (repository !== undefined) throw servedKeys(path, repository);
}

/** As requireKeyPlace, where the repository is yet to be made. @throws WritError KEYS_IN_REPOSITORY */
export function requireApart(repository: string, keysDirectory: string): void {
  requireKeyPlace(keysDirectory);
  const [served, secret] = [realPlace(repository), realPlace(keysDirectory)];
  if (nearestAbove(keysDirectory, (directory) => directory === served) !== undefined)
    throw servedKeys(keysDirectory, repository);
  const keys = nearestAbove(repository, (directory) => directory === secret || holdsKeys(directory));
  if (keys === undefined) return;
  throw new WritError('KEYS_IN_REPOSITORY', `${repository} would be inside the key directory ${keys}`, {
    facts: { repository, keys },
    hint: 'Choose a directory for the repository that contains no keys and is not inside a key directory.',
  });
}

interface Apart {
  readonly keysDirectory: string;
  readonly repository: string;
  /** Other secrets, as a file with a passphrase. */
  readonly secretFiles?: readonly string[] | undefined;
}

/**
 * Checks that what is published is apart from what signs it, whatever links lead from one to the other: `.` with the keys in it would
 * be signed, keys included. What --exclude leaves out counts too, because the next release may be published without it.
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
    const isBelow = nearestAbove(path, (directory) => directory === published) !== undefined;
    const isAbove = nearestAbove(source, (directory) => directory === place) !== undefined;
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
  return signsOfRepository.some((name) => fs.existsSync(join(directory, name)));
}

function holdsKeys(directory: string): boolean {
  try {
    return fs.readdirSync(directory).some((name) => secretOfRole.test(name));
  } catch {
    // What is not there yet, or this user may not list, says nothing.
    return false;
  }
}

function nearestAbove(path: string, isIt: (directory: string) => boolean): string | undefined {
  for (let directory = realPlace(path); ; directory = dirname(directory)) {
    if (isIt(directory)) return directory;
    if (directory === dirname(directory)) return undefined;
  }
}

/** The path without links, also of what is not there yet: a link in a repository's place serves what it leads to. */
function realPlace(path: string): string {
  const whole = resolve(path);
  if (whole === dirname(whole)) return whole;
  try {
    return fs.realpathSync(whole);
  } catch {
    return join(realPlace(dirname(whole)), basename(whole));
  }
}
