// A proposed root as a file that people mail to each other: the root with its signatures so far, and the chain of roots
// before it. Defines the format, its bounds, and the code that people compare by voice. The file is not trusted until its
// base is the root that the reader trusts, and no text in it is shown to people.
import { createHash, scryptSync } from 'node:crypto';
import { isWritError, WritError } from '../../core/errors.js';
import { defaultMetadataLimits } from '../../core/limits.js';
import { type Digest, digestFromHex } from '../../core/names.js';
import { type JsonValue, parseStrictJson } from '../../core/text/strict-json.js';
import { trustFirstRoot, trustNextRoot } from '../../core/tuf/trusted-set.js';
import { type Envelope, type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import { readSmallFile } from '../../platform/read-file.js';
import { encodeMetadata } from '../keys/signer.js';

export interface Proposal {
  readonly root: ParsedFile<'root'>;
  /** The digest of the signed part of the root that the proposal follows. */
  readonly baseDigest: Digest;
  /** Roots in ascending order, the base last, so that a reader that trusts an older root can follow. */
  readonly chain: readonly ParsedFile<'root'>[];
}

const formatVersion = 1;
const maxProposalBytes = 4_000_000;
const maxSignatures = 100;

/** @returns the digest of the signed bytes; it does not depend on the signatures */
export function rootDigest(root: ParsedFile<'root'>): Digest {
  return digestFromHex(createHash('sha256').update(root.signedBytes).digest('hex')) as Digest;
}

/** @returns the bytes of the mailed file, which parseProposal reads */
export function encodeProposal({ root, baseDigest, chain }: Proposal): Buffer {
  const envelope = ({ signatures, signed }: Envelope<object>) => ({ signatures, signed });
  const file = {
    'writ-proposal': formatVersion,
    base: baseDigest,
    chain: chain.map(envelope),
    root: envelope(root),
  };
  return Buffer.from(`${JSON.stringify(file)}\n`, 'utf8');
}

/**
 * @returns the proposal; its signatures are not verified
 * @throws WritError PROPOSAL_MALFORMED
 */
export function parseProposal(bytes: Uint8Array): Proposal {
  const json = parseStrictJson(bytes);
  if (json.kind === 'refused') throw malformed(`${json.reason} at ${json.offset}`);
  const file = members(json.value, ['base', 'chain', 'root', 'writ-proposal'], 'the file');
  if (file['writ-proposal'] !== formatVersion) throw malformed('its format is unknown');
  const { base } = file;
  const baseDigest = typeof base === 'string' ? digestFromHex(base.replace(/^sha256:/, '')) : undefined;
  if (baseDigest === undefined || base !== baseDigest) throw malformed('base is not a digest');
  const { chain } = file;
  const most = defaultMetadataLimits.maxRootRotations;
  if (!Array.isArray(chain) || chain.length === 0 || chain.length > most) throw malformed('chain');
  const roots = (chain as readonly JsonValue[]).map((value, index) => rootAt(value, `chain[${index}]`));
  return { root: rootAt(file['root'], 'root'), baseDigest, chain: roots };
}

function rootAt(value: JsonValue | undefined, where: string): ParsedFile<'root'> {
  const { signatures } = members(value, ['signatures', 'signed'], where);
  if (!Array.isArray(signatures) || signatures.length > maxSignatures) throw malformed(`${where}.signatures`);
  for (const one of signatures as readonly JsonValue[])
    members(one, ['keyid', 'sig'], `${where}.signatures[]`);
  try {
    return parseEnvelope(encodeMetadata(value as unknown as Envelope<object>), 'root');
  } catch (error) {
    if (isWritError(error)) throw malformed(`${where}: ${error.message}`, error);
    throw error;
  }
}

/** Requires exactly these members, because an unknown member could carry a message that no check covers. */
function members(
  value: JsonValue | undefined,
  names: readonly string[],
  where: string,
): Readonly<Record<string, JsonValue>> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject || Object.keys(value).sort().join() !== names.join()) {
    throw malformed(`${where} does not have the members ${names.join(', ')}`);
  }
  return value as Readonly<Record<string, JsonValue>>;
}

function malformed(what: string, cause?: unknown): WritError {
  return new WritError('PROPOSAL_MALFORMED', `the proposal cannot be read: ${what}`, {
    facts: { what },
    cause,
  });
}

/**
 * Reads a proposal from its file. Verifies the format only: its signatures and its base are not verified.
 * @returns the proposed root, the digest of its base, and the chain of roots, with the base as the last one
 * @throws WritError PROPOSAL_MALFORMED for other content, and for a file that is missing, too long or not regular
 */
export function readProposal(path: string): Proposal {
  const verdict = readSmallFile(path, { maxBytes: maxProposalBytes });
  if (verdict.kind === 'read') return parseProposal(verdict.bytes);
  if (verdict.kind === 'absent') {
    throw new WritError('PROPOSAL_MALFORMED', `there is no file ${path}`, {
      facts: { what: 'missing', path },
      hint: 'Check the path, and whether its owner has signed yet.',
    });
  }
  throw malformed(`${path}: ${verdict.why}`, verdict.kind === 'refused' ? verdict.cause : undefined);
}

/**
 * Follows the chain in the file from a root that the reader trusts.
 * @param anchor the reader's own root: the base or an older root
 * @returns the base, which is now trusted
 * @throws WritError PROPOSAL_BASE
 */
export function trustBase({ chain, baseDigest }: Proposal, anchor: Uint8Array): ParsedFile<'root'> {
  let set = trustFirstRoot(anchor);
  try {
    for (const root of chain) {
      if (root.signed.version > set.root.signed.version) set = trustNextRoot(set, root.bytes);
    }
  } catch (error) {
    if (!isWritError(error)) throw error;
    throw wrongBase(`its chain does not start at root v${set.root.signed.version}: ${error.message}`, {
      clientCode: error.code,
    });
  }
  const actual = rootDigest(set.root);
  if (actual === baseDigest) return set.root;
  throw wrongBase(`it is not based on your root v${set.root.signed.version}`, {
    expected: actual,
    actual: baseDigest,
  });
}

/**
 * Creates the error for a proposal that follows another root than the expected one. Does not throw it.
 * @param what the difference, as `the repository is at root v3 already`
 * @returns a WritError PROPOSAL_BASE with the difference in its message, and with exactly these facts
 */
export function wrongBase(what: string, facts: Readonly<Record<string, unknown>> = {}): WritError {
  return new WritError('PROPOSAL_BASE', `the proposal is based on another root: ${what}`, { facts });
}

/**
 * Merges the signatures of copies that people signed in parallel.
 * @throws WritError PROPOSAL_CODE when they are copies of different proposals
 */
export function mergeProposals([first, ...others]: readonly [Proposal, ...Proposal[]]): Proposal {
  const expected = rootDigest(first.root);
  const signatures = new Map(first.root.signatures.map((one) => [`${one.keyid} ${one.sig}`, one]));
  for (const { root } of others) {
    const actual = rootDigest(root);
    if (actual !== expected) {
      throw new WritError('PROPOSAL_CODE', 'these files are different proposals', {
        facts: { expected: proposalCode(first), actual: proposalCode({ root }) },
      });
    }
    for (const one of root.signatures) signatures.set(`${one.keyid} ${one.sig}`, one);
  }
  return { ...first, root: { ...first.root, signatures: [...signatures.values()] } };
}

/** About 100 ms and 32 MB for each guess; see docs/adr/0013. */
const codeScrypt = { N: 2 ** 15, r: 8, p: 1, maxmem: 2 ** 26 };

/** @returns the code that people compare by voice before they sign, as `3f1a-77c2-90ab-11de` */
export function proposalCode({ root }: Pick<Proposal, 'root'>): string {
  const digest = createHash('sha256').update(root.signedBytes).digest();
  // Slow on purpose. Attack: a person who replaces the mailed file searches for another root with the same code.
  const hex = scryptSync(digest, 'writ root proposal 1', 8, codeScrypt).toString('hex');
  return (hex.match(/.{4}/g) ?? []).join('-');
}

/** Ignores upper case, spaces and missing dashes in the typed code. */
export function isSameCode(code: string, typed: string): boolean {
  return typed.toLowerCase().replace(/[\s-]/g, '') === code.replaceAll('-', '');
}
