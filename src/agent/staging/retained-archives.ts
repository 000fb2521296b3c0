// A repository client that reads a retained archive of this host before it requests one from a mirror. A retained archive is
// verified against the signed digest as a transfer is; the mirrors replace a damaged one.
import * as fs from 'node:fs';
import { isWritError, WritError } from '../../core/errors.js';
import { diskError } from '../../platform/disk/durable-fs.js';
import type { TransferStart } from '../../trust/download.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import { archivePathOf } from '../generations/release-records.js';
import type { Host } from '../state/host.js';
import { releaseDirectoryName } from '../state/paths.js';

/**
 * Creates a client that reads the retained archive before it downloads. Its other methods are those of `host.client`.
 * @param canDownload true: if the retained archive cannot be used, its failure is logged and the mirrors are tried. False: no
 *   request
 * @returns the client. `download` resolves to an empty list from the retained archive, otherwise to the result of `host.client`
 * @throws (its `download`) WritError STATE_DAMAGED for a lost or damaged archive if `canDownload` is false; DISK_* if the
 *   staging directory cannot be written; the error of an aborted `signal`; the errors of a download from the mirrors. This
 *   function throws nothing
 */
export function preferRetainedArchives(
  host: Host,
  { canDownload }: { readonly canDownload: boolean },
): RepositoryClient {
  return {
    ...host.client,
    download: async (target, receive, signal) => {
      try {
        const { bundle, serial, manifest } = target.release;
        const path = archivePathOf(host.paths, bundle, releaseDirectoryName(serial, manifest.digest));
        return await createFileClient(path).download(target, receive, signal);
      } catch (error) {
        if (signal?.aborted || isStagingFailure(error)) throw error;
        if (!canDownload) throw createLostError(target, error);
        host.log.warn({ err: error, target: target.path }, 'the kept archive cannot be used');
        return host.client.download(target, receive, signal);
      }
    },
  };
}

/** True if staging cannot be written, because another source of the archive would fail too. */
function isStagingFailure(error: unknown): boolean {
  return isWritError(error) && error.code.startsWith('DISK_') && error.facts['op'] !== readOp;
}

function createLostError({ path, release }: SignedTarget, cause: unknown): WritError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new WritError('STATE_DAMAGED', `the kept archive of ${release.bundle} cannot be used: ${why}`, {
    facts: { target: path },
    cause,
  });
}

const readOp = 'repair.kept-archive';

/** @returns a client that sends this file for every target */
export function createFileClient(path: string): Pick<RepositoryClient, 'download'> {
  return {
    download: async (_, receive, signal = new AbortController().signal) => {
      await receive((start) => readRetainedFile(path, start), signal, 'no');
      return [];
    },
  };
}

async function* readRetainedFile(path: string, { offset, onBegin }: TransferStart): AsyncGenerator<Buffer> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  try {
    const descriptor = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    onBegin({ offset });
    for await (const chunk of fs.createReadStream(path, { fd: descriptor, start: offset }))
      yield chunk as Buffer;
  } catch (error) {
    throw diskError(error, { op: readOp, path });
  }
}
