// A proposed root as a file that is mailed from person to person: the root with the signatures so far, and the chain
// of roots that it stands on. Owns format, bounds and the code told by voice. Hostile until its base is the root
// that the reader trusts; nothing in it is a text to be shown.
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
  /** Digest of the signed part of the root that it follows. */
  readonly baseDigest: Digest;
  /** Roots in ascending order, the base last: whoever trusts an older one can follow. */
  readonly chain: readonly ParsedFile<'root'>[];
}

const formatVersion = 1;
const maxProposalBytes = 4_000_000;
const maxSignatures = 100;

/** @returns the digest of what the signatures are over: the same for any set of signatures */
export function rootDigest(root: ParsedFile<'root'>): Digest {
  return digestFromHex(createHash('sha256').update(root.signedBytes).digest('hex')) as Digest;
}

/** @returns the file as it is mailed; parseProposal takes it back */
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

/** @throws WritError PROPOSAL_MALFORMED */
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

/** Exactly these: what nobody reads could carry a message that nobody checks. */
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

/** @throws WritError PROPOSAL_MALFORMED, also for what is no regular file, too long or not there */
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
 * Follows the chain of the file from a root that the reader trusts by itself.
 * @param anchor the reader's own root; older than the base, or the base itself
 * @returns the base, now trusted
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

/** @param what is wrong, as `the repository is at root v3 already` */
export function wrongBase(what: string, facts: Readonly<Record<string, unknown>> = {}): WritError {
  return new WritError('PROPOSAL_BASE', `the proposal is based on another root: ${what}`, { facts });
}

/**
 * Puts the signatures of copies together that people signed side by side.
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

/** @returns as `3f1a-77c2-90ab-11de`: what people tell each other by voice before they sign */
export function proposalCode({ root }: Pick<Proposal, 'root'>): string {
  const digest = createHash('sha256').update(root.signedBytes).digest();
  // Slow on purpose: whoever swaps the file in the mail has to find another root with this very code.
  const hex = scryptSync(digest, 'writ root proposal 1', 8, codeScrypt).toString('hex');
  return (hex.match(/.{4}/g) ?? []).join('-');
}

/** True for the code as a person writes it: in capitals, with spaces, without dashes. */
export function isSameCode(code: string, typed: string): boolean {
  return typed.toLowerCase().replace(/[\s-]/g, '') === code.replaceAll('-', '');
}
