// The client of tuf-js with a repository of Writ, to compare both clients on all published files.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Updater } from 'tuf-js';

export interface TufJsClientOptions {
  /** An empty directory, or that of an earlier client. */
  readonly directory: string;
  readonly bootstrapRoot: Uint8Array;
  /** URL of the repository with a slash at its end. */
  readonly url: string;
  /** Current time of the client in epoch milliseconds. */
  readonly nowMs: number;
}

export interface TufJsClient {
  refresh(): Promise<void>;
  /** @returns the bytes of a target; undefined if no role lists it */
  download(path: string): Promise<Buffer | undefined>;
  /** @returns the version of a trusted role in its store */
  version(role: string): number;
}

/** @returns a new client, which refreshes only once */
export function tufJsClient({ directory, bootstrapRoot, url, nowMs }: TufJsClientOptions): TufJsClient {
  const metadataDir = `${directory}/metadata`;
  const targetDir = `${directory}/targets`;
  for (const path of [metadataDir, targetDir]) mkdirSync(path, { recursive: true });
  const root = `${metadataDir}/root.json`;
  if (!existsSync(root)) writeFileSync(root, bootstrapRoot);
  const updater = new Updater({
    metadataDir,
    targetDir,
    metadataBaseUrl: `${url}metadata/`,
    targetBaseUrl: `${url}targets/`,
    config: { fetchRetry: 0, fetchTimeout: 60_000 },
  });
  // The client reads the time once in its constructor, which has no parameter for it.
  const { trustedSet } = updater as unknown as { trustedSet: { referenceTime: Date } };
  trustedSet.referenceTime = new Date(nowMs);
  return {
    refresh: () => updater.refresh(),
    download: async (path) => {
      const info = await updater.getTargetInfo(path);
      return info === undefined ? undefined : readFileSync(await updater.downloadTarget(info));
    },
    version: (role) => JSON.parse(readFileSync(`${metadataDir}/${role}.json`, 'utf8')).signed.version,
  };
}
