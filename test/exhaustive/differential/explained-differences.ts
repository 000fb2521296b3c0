// The differences between our client and that of tuf-js: each row describes one, names the client that is right, and
// recognises its case in the changed files, not only in the results. A difference without a row is a defect of one client.

import { type Bent, bentRoles, keyIdOf } from '../../kit/repository/bent-repository.js';
import type { Loose } from '../../kit/repository/simulated-metadata.js';
import type { Difference } from '../../kit/trust/two-clients.js';

export interface BentCase {
  readonly bent: Bent;
  readonly served: ReadonlyMap<string, Buffer>;
}

export interface Explanation {
  readonly what: string;
  readonly why: string;
  explains(difference: Difference, bent: BentCase): boolean;
}

/** The text of the file that our client refused. */
function refusedText({ ourError }: Difference, { served }: BentCase): string {
  return textOf(String(ourError?.facts['role']), served);
}

function textOf(role: string, served: ReadonlyMap<string, Buffer>): string {
  const path = [...served.keys()].find(
    (name) => name.endsWith(`${role}.json`) && /^metadata\/(2\.)?\w+\.json$/.test(name),
  );
  return served.get(path ?? '')?.toString() ?? '';
}

function parsed(text: string): Loose {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Every value in the refused file, with the name it stands under. */
function refusedValues(difference: Difference, bent: BentCase): [string, Loose][] {
  return valuesIn(parsed(refusedText(difference, bent)));
}

function valuesIn(value: Loose, name = ''): [string, Loose][] {
  if (value === null || typeof value !== 'object') return [[name, value]];
  return [[name, value], ...Object.entries(value).flatMap(([own, inner]) => valuesIn(inner, own))];
}

const isCount = (value: Loose): boolean => Number.isSafeInteger(value) && value >= 1;

/** Our client reports a malformed member of the file, and the file has such a member. */
function malformed(member: RegExp, wrong: (name: string, value: Loose) => boolean): Explanation['explains'] {
  return (difference, bent) => {
    const { ourError, stricter } = difference;
    if (stricter !== 'ours' || ourError?.code !== 'METADATA_MALFORMED') return false;
    if (!member.test(String(ourError.facts['member']))) return false;
    return refusedValues(difference, bent).some(([name, value]) => wrong(name, value));
  };
}

function malformedText(member: RegExp, wrong: (text: string) => boolean): Explanation['explains'] {
  return (difference, bent) => {
    const { ourError, stricter } = difference;
    return (
      stricter === 'ours' &&
      ourError?.code === 'METADATA_MALFORMED' &&
      member.test(String(ourError.facts['member'])) &&
      wrong(refusedText(difference, bent))
    );
  };
}

/** The keys that the delegator of the refused role lists for it, by id. */
function listedKeys(difference: Difference, { served }: BentCase): [string, Loose][] {
  const role = String(difference.ourError?.facts['role']);
  const by = String(difference.ourError?.facts['by']);
  const { signed } = parsed(textOf(by, served)) ?? {};
  const from = by === 'root' ? signed : signed?.delegations;
  const entry = by === 'root' ? from?.roles?.[role] : from?.roles?.find((one: Loose) => one?.name === role);
  const ids: Loose[] = Array.isArray(entry?.keyids) ? entry.keyids : [];
  return ids.map((id) => [String(id), from?.keys?.[id]]);
}

function belowThreshold(wrong: (keys: [string, Loose][], text: Loose) => boolean): Explanation['explains'] {
  return (difference, bent) =>
    difference.stricter === 'ours' &&
    difference.ourError?.code.startsWith('SIGNATURE_') === true &&
    wrong(listedKeys(difference, bent), parsed(refusedText(difference, bent)));
}

/** tuf-js refuses a form that the specification, or our reading of it, allows. */
function theirs(message: RegExp, shape: (bent: BentCase) => boolean): Explanation['explains'] {
  return (difference, bent) =>
    difference.stricter === 'theirs' && message.test(String(difference.theirError)) && shape(bent);
}

function anywhere({ served }: BentCase, test: (name: string, value: Loose) => boolean): boolean {
  return bentRoles.some((role) =>
    valuesIn(parsed(textOf(role, served))).some(([name, value]) => test(name, value)),
  );
}

const teamPaths = ({ served }: BentCase): string[] => {
  const roles: Loose = parsed(textOf('targets', served))?.signed?.delegations?.roles;
  return (Array.isArray(roles) ? roles : []).flatMap((role) =>
    Array.isArray(role?.paths) ? role.paths.map(String) : [],
  );
};

const isDuplicate = <T>(values: readonly T[]): boolean => new Set(values).size !== values.length;

export const explanations: readonly Explanation[] = [
  {
    what: 'a key id that is not the digest of its key',
    why: 'ours: 4.2.1 has ids recomputed; tuf-js takes the name for the thing',
    explains: belowThreshold((keys) => keys.some(([id, key]) => key !== undefined && keyIdOf(key) !== id)),
  },
  {
    what: 'one public key under two ids',
    why: 'ours: a threshold counts signers; tuf-js counts names',
    explains: belowThreshold((keys) => isDuplicate(keys.map(([, key]) => key?.keyval?.public))),
  },
  {
    what: 'an Ed25519 key written as PEM',
    why: 'ours: 4.2 writes it in hex; a second form is a second identity of one key',
    explains: belowThreshold((keys) =>
      keys.some(([, key]) => key?.keytype === 'ed25519' && /BEGIN/.test(String(key?.keyval?.public))),
    ),
  },
  {
    what: 'a scheme that does not belong to the type of the key',
    why: 'ours: a scheme says what the signature is; tuf-js does not look at it for Ed25519',
    explains: belowThreshold((keys) =>
      keys.some(([, key]) => key?.keytype === 'ed25519' && key?.scheme !== 'ed25519'),
    ),
  },
  {
    what: 'a signature that goes on behind its hex digits',
    why: 'ours: it is hex to its end; Buffer.from stops without a word where the digits stop',
    explains: belowThreshold((_keys, file) => {
      const signatures: Loose[] = Array.isArray(file?.signatures) ? file.signatures : [];
      return signatures.some((one) => !/^([0-9a-f]{2})*$/i.test(String(one?.sig)));
    }),
  },
  {
    what: 'a number that is no safe integer',
    why: 'ours: canonical JSON has no floats, and a version beyond 2^53 is not the one that was signed',
    explains: malformedText(/^JSON: not a safe integer/, (text) => /[\d.]e|\d\.\d|\d{16}/.test(text)),
  },
  {
    what: 'a member twice',
    why: 'ours: two readers would see two files; JSON.parse takes the last twin',
    explains: malformedText(/^JSON: duplicate/, (text) =>
      /"version":(-?\d+),"version":\1|"signatures":\[\],"signatures"|^\{"(\w+)":.*"\2":/.test(text),
    ),
  },
  {
    what: 'a lone surrogate',
    why: 'ours: it becomes U+FFFD in UTF-8, so two strings would carry one signature',
    explains: malformedText(/^JSON: a lone surrogate/, (text) => text.includes('\\ud800')),
  },
  {
    what: 'bytes that are no UTF-8',
    why: 'ours: they would be read as U+FFFD',
    explains: malformedText(/^JSON: not UTF-8/, (text) => text.includes('\ufffd')),
  },
  {
    what: 'nesting without end',
    why: 'ours: every input has a bound',
    explains: malformedText(/^JSON: nested too deeply/, (text) => text.includes('['.repeat(65))),
  },
  {
    what: 'a version below 1',
    why: 'ours: 4.3 wants an integer above zero; tuf-js takes any number',
    explains: malformed(/(^|\.)version$/, (name, value) => name === 'version' && !isCount(value)),
  },
  {
    what: 'a spec_version that is no version',
    why: 'ours: digits and dots; tuf-js takes whatever Number can read between the dots',
    explains: malformed(
      /^spec_version$/,
      (name, value) => name === 'spec_version' && !/^1\.\d+(\.\d+)?$/.test(String(value)),
    ),
  },
  {
    what: 'an expiry in another form, or on a day that is none',
    why: 'ours: 4.3 wants UTC ISO 8601 with Z; Date takes local time, years alone and February 30',
    explains: malformed(
      /^expires$/,
      (name, value) =>
        name === 'expires' &&
        !(
          /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/.test(String(value)) &&
          !String(value).includes('02-30')
        ),
    ),
  },
  {
    what: 'a snapshot that does not list the targets',
    why: 'ours: refused before it is stored; tuf-js stores it and fails at the next step',
    explains: malformed(
      /^meta\.targets\.json$/,
      (name, value) => name === 'meta' && value?.['targets.json'] === undefined,
    ),
  },
  {
    what: 'a length of nothing',
    why: 'ours: no metadata file has 0 bytes; tuf-js takes 0 for "not given" when it bounds the fetch',
    explains: malformed(/\.length$/, (name, value) => name === 'length' && !isCount(value)),
  },
  {
    what: 'no digest at all',
    why: 'ours: an empty list would let every content pass',
    explains: malformed(
      /hashes$/,
      (name, value) => name === 'hashes' && (Object.keys(value ?? {}).length === 0 || Array.isArray(value)),
    ),
  },
  {
    what: 'a digest by an algorithm of old',
    why: 'ours: SHA-256 and SHA-512 alone prove anything; tuf-js asks OpenSSL, which knows MD5',
    explains: ({ stricter, ourError }, bent) =>
      stricter === 'ours' &&
      ourError?.code === 'METADATA_MIX' &&
      ourError.facts.actual === 'unknown' &&
      anywhere(bent, (name, value) => name === 'hashes' && value?.md5 !== undefined),
  },
  {
    what: 'a digest by an algorithm to come, beside one that is known',
    why: 'ours: 5.7 wants at least one known digest to match; tuf-js wants to know all of them',
    explains: theirs(/not supported/, (bent) =>
      anywhere(bent, (name, value) => name === 'hashes' && Object.keys(value ?? {}).length > 1),
    ),
  },
  {
    what: 'a list where an object belongs',
    why: 'ours: to JavaScript a list is an object, to the specification it is not',
    explains: (difference, bent) => {
      const member = String(difference.ourError?.facts['member']);
      return malformed(/./, (name, value) => Array.isArray(value) && name !== '' && member.endsWith(name))(
        difference,
        bent,
      );
    },
  },
  {
    what: 'delegations without roles, or a role without a word on what it covers',
    why: 'ours: 4.5 wants roles, and of each of them paths or prefixes; tuf-js knows bins (TAP 15) in their place',
    explains: malformed(
      /^delegations\.roles$|\.paths$/,
      (name, value) =>
        (name === 'delegations' && value?.roles === undefined) ||
        (name !== '' &&
          value?.keyids !== undefined &&
          value?.paths === undefined &&
          value?.path_hash_prefixes === undefined),
    ),
  },
  {
    what: 'a prefix that no digest can have',
    why: 'ours: a bin that can never be hit is a mistake, and an empty one is all bins',
    explains: malformed(
      /path_hash_prefixes\[\]$/,
      (name, value) =>
        name === 'path_hash_prefixes' && [value].flat().some((one) => !/^[0-9a-f]{1,64}$/.test(String(one))),
    ),
  },
  {
    what: 'a delegated role without a name, or with one too long for a file',
    why: 'ours: it becomes the name of a file and part of a URL',
    explains: malformed(
      /roles\[\]\.name$/,
      (name, value) => name === 'name' && (value === '' || encodeURIComponent(String(value)).length > 200),
    ),
  },
  {
    what: 'a key without its public part',
    why: 'ours: a key has one; tuf-js finds out when it is to verify',
    explains: malformed(
      /keyval\.public$/,
      (name, value) => name === 'keyval' && typeof value?.public !== 'string',
    ),
  },
  {
    what: 'a timestamp of more than 16,000 bytes',
    why: 'neither: the bound is each client’s own, theirs is 16,384',
    explains: ({ stricter, ourError }, bent) =>
      stricter === 'ours' &&
      ourError?.code === 'DOWNLOAD_TOO_LARGE' &&
      textOf('timestamp', bent.served).length > 16_000,
  },
  {
    what: 'a root without consistent_snapshot',
    why: 'ours: it is optional since 1.0, absent means no',
    explains: (difference, bent) =>
      difference.stage === 'root' &&
      theirs(
        /consistent_snapshot must be a boolean/,
        ({ served }) => parsed(textOf('root', served))?.signed?.consistent_snapshot === undefined,
      )(difference, bent),
  },
  {
    what: 'a delegation without terminating',
    why: 'ours: the specification’s own example leaves it out',
    explains: theirs(/terminating must be a boolean/, (bent) =>
      anywhere(
        bent,
        (_name, value) =>
          value?.keyids !== undefined && value?.name !== undefined && value?.terminating === undefined,
      ),
    ),
  },
  {
    what: 'a key id listed twice in a role',
    why: 'ours: it counts once (the public suite tests that), so it harms nothing',
    explains: theirs(/duplicate key IDs/, (bent) =>
      anywhere(bent, (name, value) => name === 'keyids' && Array.isArray(value) && isDuplicate(value)),
    ),
  },
  {
    what: 'more than strings in keyval',
    why: 'ours: members that we do not know are kept, whatever they are',
    explains: theirs(/keyval must be a string record/, (bent) =>
      anywhere(
        bent,
        (name, value) =>
          name === 'keyval' && Object.values(value ?? {}).some((one) => typeof one !== 'string'),
      ),
    ),
  },
  {
    what: 'a role in the root that nobody asks for and that is none',
    why: 'ours: only the four roles are read',
    explains: (difference, bent) =>
      difference.stage === 'root' &&
      theirs(
        /keyids must be|threshold must be|roles must be/,
        ({ served }) => parsed(textOf('root', served))?.signed?.roles?.mirrors !== undefined,
      )(difference, bent),
  },
  {
    what: 'a name that every JavaScript object has',
    why: 'ours: maps have no prototype; tuf-js finds a target called "constructor" that nobody listed',
    explains: ({ stage, path }) => stage === 'lookup' && path === 'constructor',
  },
  {
    what: 'a name that begins with a dot',
    why: 'ours: the specification knows no hidden names; minimatch leaves them out of `*`',
    explains: ({ stage, path }, bent) =>
      stage === 'lookup' &&
      path === 'dns/.hidden' &&
      !teamPaths(bent).some((pattern) => pattern.includes('/.')),
  },
  {
    what: 'a pattern with more than * and ?',
    why: 'ours: 4.5 has these two; minimatch takes braces, brackets, negations and comments as well',
    explains: ({ stage }, bent) =>
      stage === 'lookup' && teamPaths(bent).some((pattern) => /[{}[\]!#+()\\]|\*\*/.test(pattern)),
  },
];
