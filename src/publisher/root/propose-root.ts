// Creates the proposal of a next root, and opens the keys that sign one. Reads only the chain of roots, so that the root of
// a repository with expired or lost roles can still be rotated.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { defaultMetadataLimits } from '../../core/limits.js';
import { parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Clock } from '../../platform/time/clock.js';
import { createExternalSigner, type ExternalCommand } from '../keys/external-signer.js';
import { keyFilesIn, keyIdOfFile, openKey, type PassphraseSource } from '../keys/key-directory.js';
import { type KeyFile, readKeyFile } from '../keys/key-file.js';
import { encodeMetadata, type Signer } from '../keys/signer.js';
import { layoutOf, readRepositoryFile } from '../repository/repository-layout.js';
import { anchorName, readRoots } from '../repository/repository-state.js';
import { encodeProposal, type Proposal, rootDigest } from './proposal-file.js';
import { signingKeys, type TrustedProposal, validSignatures } from './proposal-signatures.js';
import { changeRoot, type RootChange } from './root-change.js';
import { nameIn } from './root-difference.js';
import { judgeRoot, requireAllowedChange } from './root-rules.js';

export interface ProposeOptions {
  readonly repository: string;
  /** The directory with the proposer's copy of the root. */
  readonly keysDirectory?: string | undefined;
  readonly change: RootChange;
  /** `accepted`: the operator confirmed the dangerous changes. */
  readonly danger: 'refused' | 'accepted';
  readonly clock: Clock;
}

/**
 * Creates a proposal for the next root. Opens no key and writes nothing.
 * @returns the unsigned proposal, one version above the newest root of the repository, with the complete chain of roots; and
 *   `base`: the newest root
 * @throws WritError ROOT_CHANGE_REFUSED for a change that is never allowed, or is dangerous and not accepted;
 *   REPOSITORY_INVALID if the roots do not verify or differ from those of the keys directory; DISK_*
 */
export function proposeRoot(options: ProposeOptions): TrustedProposal {
  const layout = layoutOf(options.repository);
  // The complete chain, so that a signer with any root of the chain can follow.
  const { roots } = readRoots(layout);
  const base = readRoots(layout, options.keysDirectory).roots.at(-1);
  const newest = roots.at(-1);
  if (base === undefined || newest === undefined || rootDigest(base) !== rootDigest(newest)) {
    throw new WritError('REPOSITORY_INVALID', 'the roots of the repository are not those of --keys', {
      facts: { directory: options.repository },
    });
  }
  // Uses the local clock, because roots have no lower bound of the time. A root signed ahead would otherwise make all later
  // roots expire late.
  const signed = changeRoot(base.signed, options.change, options.clock.nowMs());
  requireAllowedChange(judgeRoot(base.signed, signed), { danger: options.danger });
  // Do not mail a root that this program could not read.
  const root = parseEnvelope(encodeMetadata({ signatures: [], signed }), 'root');
  return { base, proposal: { root, baseDigest: rootDigest(base), chain: roots } };
}

/**
 * Writes the proposal into a new file.
 * @throws WritError USAGE when the file exists, because it may contain signatures; DISK_*
 */
export function writeNewProposal(path: string, proposal: Proposal, durableFs: DurableFs): void {
  if (fs.existsSync(path)) {
    throw new WritError('USAGE', `${path} exists, and may contain signatures`, {
      hint: 'If its root is committed, move the file away; otherwise choose another name with -o.',
    });
  }
  replaceProposal(path, proposal, durableFs);
}

/** Replaces the file by one rename, so that a crash loses no signature. @throws WritError DISK_* */
export function replaceProposal(path: string, proposal: Proposal, durableFs: DurableFs): void {
  durableFs.writeFile('proposal', path, encodeProposal(proposal), 0o644);
}

/** The keys that a signer provides: key files, a key directory, or signing commands. */
export interface ProvidedKeys {
  readonly keyFiles: readonly string[];
  readonly keysDirectory?: string | undefined;
  readonly external: readonly ExternalCommand[];
  readonly passphrases: PassphraseSource;
}

/**
 * Opens the root keys that have not signed yet, and asks for the passphrases of these only.
 * @returns the signers, and the ids of the available keys that have signed before
 * @throws WritError KEYS_MISSING when none of the available keys may sign, KEY_UNREADABLE, PASSPHRASE_NEEDED,
 *   PASSPHRASE_WRONG
 */
export async function openSigners(
  trusted: TrustedProposal,
  provided: ProvidedKeys,
): Promise<{ readonly signers: readonly Signer[]; readonly already: readonly string[] }> {
  const keys = signingKeys(trusted);
  const signed = new Set(validSignatures(trusted).map(({ keyid }) => keyid));
  const files = filesOf(provided).filter((file) => keys.has(keyIdOfFile(file)));
  const external = provided.external
    .filter((command) => command.serves('root'))
    .map((command) => createExternalSigner(command, { role: 'root', keys: [...keys.values()] }));
  if (files.length + external.length === 0) throw noSigner(trusted);
  const already = files.map(keyIdOfFile).filter((id) => signed.has(id));
  const signers: Signer[] = [];
  for (const file of files.filter((one) => !signed.has(keyIdOfFile(one)))) {
    signers.push(await openKey(file, provided.passphrases));
  }
  return { signers: [...signers, ...external], already };
}

function filesOf({ keyFiles, keysDirectory }: ProvidedKeys): KeyFile[] {
  const named = keyFiles.map((path) => {
    const file = readKeyFile(path);
    if (file !== undefined) return file;
    throw new WritError('KEY_UNREADABLE', `${path} is missing`, { facts: { path } });
  });
  if (keysDirectory === undefined) return named;
  return [
    ...named,
    ...keyFilesIn(keysDirectory).flatMap((name) => readKeyFile(join(keysDirectory, name)) ?? []),
  ];
}

function noSigner(trusted: TrustedProposal): WritError {
  const { base, proposal } = trusted;
  const ids = [...signingKeys(trusted).keys()];
  const names = ids.map((id) => nameIn(base.signed, proposal.root.signed, id));
  return new WritError('KEYS_MISSING', `no root key was given; possible signers are ${names.join(', ')}`, {
    facts: { role: 'root', names },
  });
}

/**
 * Finds the root that a signer trusts: the given file, else the copy in the key directory, else the newest root of the
 * given repository.
 * @throws WritError USAGE when there is none, REPOSITORY_INVALID
 */
export function findAnchor(
  { keysDirectory, keyFiles }: Pick<ProvidedKeys, 'keyFiles' | 'keysDirectory'>,
  { root, repository }: { readonly root?: string | undefined; readonly repository?: string | undefined },
): Uint8Array {
  const directory = keysDirectory ?? (keyFiles[0] === undefined ? undefined : dirname(keyFiles[0]));
  const paths = root !== undefined ? [root] : directory === undefined ? [] : [join(directory, anchorName)];
  for (const path of paths) {
    const bytes = readRepositoryFile(path, defaultMetadataLimits.maxRootBytes);
    if (bytes !== undefined) return bytes;
  }
  const newest = repository === undefined ? undefined : readRoots(layoutOf(repository)).roots.at(-1);
  if (root === undefined && newest !== undefined) return newest.bytes;
  throw new WritError('USAGE', 'there is no root to compare the proposal with', {
    facts: { looked: paths },
    hint: 'Give the root that you trust with --root FILE; keep it beside your key as root.json.',
  });
}
