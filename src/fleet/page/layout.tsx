// What every page has around it: head, skip link, navigation, the line that says how old it is, and the part that lives.
// Owns the document; what stands in it is the pages'. No script, style or handler is inline: the policy of content forbids it.
import type { ComponentChildren, VNode } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { printable } from '../../core/text/printable.js';
import { Moment } from './parts.js';

/** Addresses of what the document loads, with their digests in the names. */
export interface AssetAddresses {
  readonly style: string;
  readonly script: string;
  readonly icon: string;
}

export interface Visitor {
  /** Token's id, or a person by a proxy's word. */
  readonly who: string;
  readonly role: string;
  /** Only a session can be ended from here. */
  readonly by: 'session' | 'token' | 'proxy';
}

export interface Frame {
  readonly assets: AssetAddresses;
  /** When the page was made. */
  readonly atMs: number;
  /** Its path and query, to ask for it again. */
  readonly address: string;
  /** Left out before sign-in. */
  readonly visitor?: Visitor;
}

interface Page extends Frame {
  readonly title: string;
  /** Which entry of the navigation this is; left out for none. */
  readonly at?: string;
  /** Least time between two swaps; left out for a page that does not change by itself. */
  readonly liveEveryMs?: number;
  /** Asks for its own address at once: the one page without content. */
  readonly comesAgain?: true;
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
  const { title, address, assets, liveEveryMs, comesAgain, children } = page;
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        {comesAgain ? <meta http-equiv="refresh" content={`0; url=${address}`} /> : null}
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
