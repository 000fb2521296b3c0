// The document of every page: head, skip link, navigation, the line with the age of the page, and the part that the script replaces.
// The pages own their content. Scripts, styles and handlers are never inline, because the content security policy forbids them.
import type { ComponentChildren, VNode } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { printable } from '../../core/text/printable.js';
import { Moment } from './parts.js';

/** Addresses of the assets, with their digests in the names. */
export interface AssetAddresses {
  readonly style: string;
  readonly script: string;
  readonly icon: string;
}

export interface Visitor {
  /** Id of a token, or the user name in the header of a proxy. */
  readonly who: string;
  readonly role: string;
  /** How the visitor is authenticated. Only a session has a button to sign out. */
  readonly by: 'session' | 'token' | 'proxy';
}

export interface Frame {
  readonly assets: AssetAddresses;
  /** When the page was rendered. */
  readonly atMs: number;
  /** Path and query of the page, to request it again. */
  readonly address: string;
  /** Undefined before the sign-in. */
  readonly visitor?: Visitor;
}

interface Page extends Frame {
  readonly title: string;
  /** Path of the current entry of the navigation; undefined if the page is not an entry. */
  readonly at?: string;
  /** Least time between two updates; undefined for a page that does not update itself. */
  readonly liveEveryMs?: number;
  /** Requests its own address again at once. Only the page without content does. */
  readonly shouldReload?: true;
  readonly children: ComponentChildren;
}

const navigation = [
  ['/', 'Fleet'],
  ['/hosts', 'Hosts'],
  ['/log', 'Log'],
] as const;

/** @returns the whole document */
export function renderPage(page: Page): string {
  return `<!doctype html>${renderToString(<Document {...page} />)}`;
}

function Document(page: Page): VNode {
  const { title, address, assets, liveEveryMs, shouldReload, children } = page;
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        {shouldReload ? <meta http-equiv="refresh" content={`0; url=${address}`} /> : null}
        <meta name="color-scheme" content="light dark" />
        <title>{`${printable(title)} - Writ fleet`}</title>
        <link rel="stylesheet" href={assets.style} />
        <link rel="icon" href={assets.icon} type="image/svg+xml" />
        {liveEveryMs === undefined ? null : <script src={assets.script} defer />}
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <Header {...page} />
        <main id="main" data-live-every-ms={liveEveryMs}>
          <div id="live">{children}</div>
        </main>
      </body>
    </html>
  );
}

function Header({ at, atMs, address, visitor, liveEveryMs }: Page): VNode {
  return (
    <header class="top">
      <nav aria-label="Pages">
        <span class="brand">Writ</span>
        {visitor === undefined
          ? null
          : navigation.map(([href, name]) => (
              <a href={href} aria-current={at === href ? 'page' : undefined}>
                {name}
              </a>
            ))}
      </nav>
      {visitor === undefined ? null : <Visit visitor={visitor} />}
      {liveEveryMs === undefined ? null : (
        <p class="age">
          <span id="age">
            as of <Moment atMs={atMs} />
          </span>{' '}
          <a href={address} class="refresh">
            Refresh
          </a>{' '}
          <span id="link" role="status" />
        </p>
      )}
    </header>
  );
}

function Visit({ visitor: { who, role, by } }: { readonly visitor: Visitor }): VNode {
  return (
    <form class="visit" method="post" action="/sign-out">
      <span>
        <bdi>{who}</bdi> ({role})
      </span>
      {by === 'session' ? <button type="submit">Sign out</button> : null}
    </form>
  );
}
