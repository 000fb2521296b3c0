// Reads the signed entry of each bundle and channel from a client after a successful refresh. An untrusted delegated role makes only
// its own channels unreadable. The client has the rules of trust.
import { isWritError, toWritError, type WritError } from '../../core/errors.js';
import type { SignedEntry } from '../../core/fleet/signed-releases.js';
import { given } from '../../core/given.js';
import { digestHex, isName } from '../../core/names.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import { type FoundFile, readSignedTarget } from '../../trust/signed-target.js';

export type OfferedEntry = Omit<SignedEntry, 'seenAtMs'>;
export type ChannelName = Pick<SignedEntry, 'bundle' | 'channel'>;

export interface OfferedReleases {
  readonly entries: readonly OfferedEntry[];
  /** Channels without a readable entry. Their known entry stays valid. */
  readonly unreadChannels: readonly ChannelName[];
  /** The first error; undefined when every channel was read. */
  readonly firstError?: WritError;
}

/** For one repository: further channels are ignored. */
const maxChannels = 1000;

/**
 * Reads the offered releases of one repository. If the list cannot be read, reads the known channels one by one.
 * @param known channels to read after an error of the list, such as an untrusted delegated role
 * @returns the entries of at most 1000 channels, in the order of the list; empty for an empty repository. A WritError is not
 *   thrown: `unreadChannels` has the channels that failed, and `firstError` the first error, also that of the list
 * @throws the error of an aborted signal, and an error that is not a WritError
 */
export async function readOfferedReleases(
  client: Pick<RepositoryClient, 'list' | 'target'>,
  known: readonly ChannelName[],
  signal: AbortSignal,
): Promise<OfferedReleases> {
  try {
    const { files } = (await client.list({ signal })) ?? { files: [] };
    return readEach(files.flatMap(parseChannelName).slice(0, maxChannels), async ({ file, ...name }) =>
      readEntry(file, name),
    );
  } catch (error) {
    if (!isWritError(error) || signal.aborted) throw error;
    const offer = await readEach(known, async (name) => {
      const found = await client.target(name.bundle, name.channel, { signal });
      return found && readEntry(found, name);
    });
    return { ...offer, firstError: error };
  }
}

async function readEach<Name extends ChannelName>(
  names: readonly Name[],
  read: (name: Name) => Promise<OfferedEntry | undefined>,
): Promise<OfferedReleases> {
  const entries: OfferedEntry[] = [];
  const unreadChannels: ChannelName[] = [];
  const errors: WritError[] = [];
  for (const name of names) {
    try {
      const entry = await read(name);
      if (entry !== undefined) entries.push(entry);
    } catch (error) {
      errors.push(toWritError(error));
      unreadChannels.push(name);
    }
  }
  const [firstError] = errors;
  return { entries, unreadChannels, ...given({ firstError }) };
}

/** @returns an empty list for a file that is not an archive of Writ: other publishers may use the same repository */
function parseChannelName(file: FoundFile): (ChannelName & { readonly file: FoundFile })[] {
  const [, bundle = '', channel = ''] = /^([^/]+)\/([^/]+)\.tar\.br$/.exec(file.path) ?? [];
  return isName(bundle) && isName(channel) ? [{ bundle, channel, file }] : [];
}

function readEntry(file: FoundFile, name: ChannelName): OfferedEntry {
  const { release, digest, length, vouchedBy } = readSignedTarget(file, name);
  const { serial, manifest, revision, createdAtMs, requires = [], fixes, stamped, withdrawn } = release;
  return {
    bundle: name.bundle,
    channel: name.channel,
    serial,
    manifest: digestHex(manifest.digest),
    manifestBytes: manifest.length,
    archive: digestHex(digest),
    archiveBytes: length,
    revision,
    createdAtMs,
    role: vouchedBy.role,
    requires,
    ...given({ fixes }),
    stamps: (stamped?.stamps ?? []).map(({ path }) => path),
    withdrawn,
  };
}
