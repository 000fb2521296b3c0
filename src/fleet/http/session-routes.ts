// A person's token for a cookie, by a form that works without JavaScript, and the end of that session. The token is in the body
// of one request and nowhere else.

import type { Kysely } from 'kysely';
import { isWritError } from '../../core/errors.js';
import type { Tables } from '../store/tables.js';
import { beginSession, cookieText, endSession, requireSameOrigin } from './callers.js';
import type { Asked, Route } from './routes.js';

export interface SessionOptions {
  readonly db: Kysely<Tables>;
  readonly nowMs: () => number;
  readonly secure: boolean;
}

const page = (said: string): string => `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Writ fleet: sign in</title>
<h1>Sign in</h1>
<p>${said}</p>
<form method="post" action="/sign-in">
<label>Token <input type="password" name="token" autocomplete="current-password" required maxlength="200"></label>
<button>Sign in</button>
</form>
`;
const welcome = 'With a token for people: <code>writ fleet token create --for people</code>.';

export function sessionRoutes({ db, nowMs, secure }: SessionOptions): readonly Route[] {
  const html = ({ reply }: Asked, status: number, said: string) =>
    reply.code(status).type('text/html; charset=utf-8').send(page(said));
  return [
    {
      method: 'GET',
      url: '/sign-in',
      summary: 'The form for people',
      access: 'anyone',
      handle: (asked) => html(asked, 200, welcome),
    },
    {
      method: 'POST',
      url: '/sign-in',
      summary: 'A token for people, as a form sends it, for a cookie of 12 hours',
      access: 'anyone',
      handle: async (asked) => {
        const { request, reply } = asked;
        requireSameOrigin(request.headers);
        const token = request.body instanceof URLSearchParams ? (request.body.get('token') ?? '') : '';
        try {
          const session = await beginSession(db, token.trim(), nowMs());
          return await reply.header('set-cookie', cookieText(session, secure)).redirect('/v1/summary', 303);
        } catch (error) {
          if (!isWritError(error) || error.code !== 'FLEET_TOKEN_REFUSED') throw error;
          return html(asked, 401, 'This token is not good. Was it copied whole?');
        }
      },
    },
    {
      method: 'POST',
      url: '/sign-out',
      summary: 'The end of the session',
      access: 'anyone',
      handle: async ({ request, reply }) => {
        requireSameOrigin(request.headers);
        await endSession(db, request.headers);
        return reply.header('set-cookie', cookieText('', secure)).redirect('/sign-in', 303);
      },
    },
  ];
}
