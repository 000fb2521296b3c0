// Makes the proposal of a next root from the repository as it is, and opens the keys that sign one. Only the chain
// of roots is read: a repository that has expired, or lost its other roles, can still be rotated.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { WritError } from '../../core/errors.js';
import { defaultMetadataLimits } from '../../core/limits.js';
import { parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Clock } from '../../platform/time/clock.js';
import { createExternalSigner, type ExternalCommand } from '../keys/external-signer.js';
import { keyFilesIn, keyIdOf, openKey, type PassphraseSource } from '../keys/key-directory.js';
import { type KeyFile, readKeyFile } from '../keys/key-file.js';
import { encodeMetadata, type Signer } from '../keys/signer.js';
import { layoutOf, readRepositoryFile } from '../repository/repository-layout.js';
import { anchorName, readRoots } from '../repository/repository-state.js';
import { encodeProposal, type Proposal, rootDigest } from './proposal-file.js';
import { signingKeys, type TrustedProposal, validSignatures } from './proposal-signatures.js';
import { changeRoot, type RootChange } from './root-change.js';
import { nameIn } from './root-difference.js';
import { judgeRoot, requireSane } from './root-rules.js';

export interface ProposeOptions {
  readonly repository: string;
  /** Where the proposer's copy of the root lies. */
  readonly keysDirectory?: string | undefined;
  readonly change: RootChange;
  /** Whether what is only dangerous was said on purpose. */
  readonly danger: 'refused' | 'accepted';
  readonly clock: Clock;
}

/** @throws WritError ROOT_CHANGE_REFUSED, REPOSITORY_INVALID; nothing is written */
export function proposeRoot(options: ProposeOptions): TrustedProposal {
  const layout = layoutOf(options.repository);
  // From the first root on, so that a signer with any root of the chain can follow.
  const { roots } = readRoots(layout);
  const base = readRoots(layout, options.keysDirectory).roots.at(-1);
  const newest = roots.at(-1);
  if (base === undefined || newest === undefined || rootDigest(base) !== rootDigest(newest)) {
    throw new WritError('REPOSITORY_INVALID', 'the roots of the repository are not those of --keys', {
      facts: { directory: options.repository },
    });
  }
  // By the maker's own clock: no floor binds a root, and one that was made ahead must not make all after it end late.
  const signed = changeRoot(base.signed, options.change, options.clock.nowMs());
  requireSane(judgeRoot(base.signed, signed), { danger: options.danger });
  // What we could not read ourselves must not be mailed.
  const root = parseEnvelope(encodeMetadata({ signatures: [], signed }), 'root');
  return { base, proposal: { root, baseDigest: rootDigest(base), chain: roots } };
}

/** @throws WritError USAGE when the file is there already, DISK_* */
export function writeNewProposal(path: string, proposal: Proposal, durableFs: DurableFs): void {
  if (fs.existsSync(path)) {
    throw new WritError('USAGE', `${path} exists, and may contain signatures`, {
      hint: 'If its root is committed, move the file away; otherwise choose another name with -o.',
    });
  }
  replaceProposal(path, proposal, durableFs);
}

/** One rename: signatures that people gave are never lost halfway. @throws WritError DISK_* */
export function replaceProposal(path: string, proposal: Proposal, durableFs: DurableFs): void {
  durableFs.writeFile('proposal', path, encodeProposal(proposal), 0o644);
}

/** What a signer brings: files of keys, a directory of them, or commands. */
export interface SigningHand {
  readonly keyFiles: readonly string[];
  readonly keysDirectory?: string | undefined;
  readonly external: readonly ExternalCommand[];
  readonly passphrases: PassphraseSource;
}

/**
 * Opens the root keys that have not signed yet; a passphrase is asked for those only.
 * @returns the signers, and the key ids at hand that have signed before
 * @throws WritError KEYS_MISSING when nothing of the hand may sign, KEY_UNREADABLE, PASSPHRASE_NEEDED, PASSPHRASE_WRONG
 */
export async function openSigners(
  trusted: TrustedProposal,
  hand: SigningHand,
): Promise<{ readonly signers: readonly Signer[]; readonly already: readonly string[] }> {
  const keys = signingKeys(trusted);
  const signed = new Set(validSignatures(trusted).map(({ keyid }) => keyid));
  const files = filesOf(hand).filter((file) => keys.has(keyIdOf(file)));
  const external = hand.external
    .filter((command) => command.serves('root'))
    .map((command) => createExternalSigner(command, { role: 'root', keys: [...keys.values()] }));
  if (files.length + external.length === 0) throw noSigner(trusted);
  const already = files.map(keyIdOf).filter((id) => signed.has(id));
  const signers: Signer[] = [];
  for (const file of files.filter((one) => !signed.has(keyIdOf(one)))) {
    signers.push(await openKey(file, hand.passphrases));
  }
  return { signers: [...signers, ...external], already };
}

function filesOf({ keyFiles, keysDirectory }: SigningHand): KeyFile[] {
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
 * Finds the root that a signer trusts by itself: the file named, else the copy beside the keys, else that of a
 * repository at hand.
 * @throws WritError USAGE when there is none, REPOSITORY_INVALID
 */
export function findAnchor(
  { keysDirectory, keyFiles }: Pick<SigningHand, 'keyFiles' | 'keysDirectory'>,
  { root, repository }: { readonly root?: string | undefined; readonly repository?: string | undefined },
): Uint8Array {
  const beside = keysDirectory ?? (keyFiles[0] === undefined ? undefined : dirname(keyFiles[0]));
  const paths = root !== undefined ? [root] : beside === undefined ? [] : [join(beside, anchorName)];
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
