// Finds the page of an error code: below WRIT_DOCS_URL, in the installed package, or only in `writ help CODE`. Reads the
// environment and the disk only for an error, so that a successful command does not need them.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { docsOf, type ErrorCode } from '../../core/errors.js';
import type { Surroundings } from './command.js';

const variable = 'WRIT_DOCS_URL';
/** An address is one line of an answer; no site needs more. */
const maxUrlCharacters = 500;
/** Where the Debian package has the program, and the site that was built with it. */
const packagedProgram = '/usr/lib/writ/';
const packagedSite = '/usr/share/doc/writ/html';

export type DocsPlaces = Pick<Surroundings, 'env' | 'docsFolder'>;

/** The command that prints a page, and the address of the page if it has one. */
export interface DocsPage {
  readonly docs: string;
  readonly docsUrl?: string;
}

/**
 * @returns members for --json: docs is the command `writ help CODE`; docsUrl is the page of the code, left out if no site is
 *   known
 */
export function docsPage(code: ErrorCode, places: DocsPlaces): DocsPage {
  const url = addressOf(code, places);
  return { docs: docsOf(code), ...(typeof url === 'string' ? { docsUrl: url } : {}) };
}

/** @returns the line for people, without its `docs:`. The command is first: a server has a terminal, and seldom a browser. */
export function docsText(code: ErrorCode, places: DocsPlaces): string {
  const url = addressOf(code, places);
  if (url === undefined) return docsOf(code);
  if (url !== invalid) return `${docsOf(code)}, or ${url}`;
  return `${docsOf(code)} (${variable} is not an address: http, https or file, at most ${maxUrlCharacters} characters)`;
}

const invalid = Symbol('what WRIT_DOCS_URL is set to is not an address');

function addressOf(code: ErrorCode, { env, docsFolder }: DocsPlaces): string | typeof invalid | undefined {
  const configured = env[variable] ?? '';
  if (configured !== '') return pageBelow(configured, code) ?? invalid;
  const folder = docsFolder ?? siteOfPackage(import.meta.dirname);
  const page = folder && join(folder, 'errors', code, 'index.html');
  // An installation without documents (path-exclude of dpkg) has the package but not the page.
  return page && existsSync(page) ? pathToFileURL(page).href : undefined;
}

/**
 * The pages of another version may lack the code: only the packaged program names those of the package.
 * @param programFolder where this file is, bundled or not
 * @returns the address of the pages; undefined for a program that is not packaged
 */
export function siteOfPackage(programFolder: string): string | undefined {
  return programFolder.startsWith(packagedProgram) ? packagedSite : undefined;
}

/** A web server answers a folder with its page; a browser that opens a folder of a disk lists it. */
function pageBelow(base: string, code: ErrorCode): string | undefined {
  const url = base.length <= maxUrlCharacters && URL.canParse(base) ? new URL(base) : undefined;
  if (url === undefined || !['http:', 'https:', 'file:'].includes(url.protocol)) return undefined;
  // A password in it would be printed with each error; a query would end in the middle.
  if (`${url.username}${url.password}${url.search}${url.hash}` !== '') return undefined;
  const page = url.protocol === 'file:' ? `${code}/index.html` : code;
  return `${url.href.replace(/\/+$/, '')}/errors/${page}`;
}
