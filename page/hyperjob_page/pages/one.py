"""The routes of a HyperJob: its overview, sections, logs and actions."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from aiohttp import web

from hyperjob.client.errors import ClientError, words
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_page.access.checks import form_fields
from hyperjob_page.pages import logs, metrics
from hyperjob_page.pages.actions import (
    LABELS,
    SECTIONS,
    VERBS,
    Section,
    act,
    available,
    confirmation,
)
from hyperjob_page.pages.answers import Context, html, job_page, streamed, whole
from hyperjob_page.pages.jobs import TABS, JobPage
from hyperjob_page.render import render
from hyperjob_page.visitor import VISITOR, Visitor

_PATH: Final = "/hyperjobs/{namespace}/{name}"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def about_one(context: Context) -> Sequence[web.RouteDef]:
    """Return the routes of a HyperJob."""
    one = _One(context)
    return [
        web.get(_PATH, one.overview),
        *(web.get(f"{_PATH}/{name}", one.section(name, make)) for name, make in SECTIONS.items()),
        web.get(f"{_PATH}/metrics", one.metrics),
        web.get(f"{_PATH}/logs", one.logs),
        *(web.get(f"{_PATH}/{name}", one.question(name)) for name in LABELS),
        *(web.post(f"{_PATH}/{name}", one.action(name)) for name in LABELS),
    ]


class _One:
    """The handlers of a HyperJob's routes; a HyperJob outside the visitor's scope is not found."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def _page(self, request: web.Request) -> JobPage:
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        page = job_page(self._context, request[VISITOR].scope, key)
        if page is None:
            raise web.HTTPNotFound(text=f"There is no HyperJob {key}, or you may not see it.")
        return page

    async def _actions(self, page: JobPage, visitor: Visitor) -> list[tuple[str, str]]:
        """Return name and label of the actions that are possible and allowed."""
        summary = page.row.summary
        allowed = {
            verb: await visitor.may(verb, summary.namespace, summary.name)
            for verb in dict.fromkeys(VERBS.values())
        }
        return [(action, LABELS[action]) for action in available(summary) if allowed[VERBS[action]]]

    async def _frame(
        self, request: web.Request, page: JobPage, template: str, **more: object
    ) -> str:
        """Return the frame of a page about the HyperJob; `more` is what the template shows."""
        visitor = request[VISITOR]
        return render(
            template,
            page=page,
            world=self._context.world,
            visitor=visitor,
            tabs=TABS,
            actions=await self._actions(page, visitor),
            **more,
        )

    async def overview(self, request: web.Request) -> web.StreamResponse:
        page, visitor = self._page(request), request[VISITOR]
        return await whole(
            request,
            self._context,
            page,
            tabs=TABS,
            actions=await self._actions(page, visitor),
            done=LABELS.get(request.query.get("done", ""), ""),
        )

    def section(self, tab: str, make: Section) -> Handler:
        """Return the handler of a section, which is sent after its frame."""

        async def show(request: web.Request) -> web.StreamResponse:
            return await self._streamed(
                request, "job_section.html", tab, partial(make, self._context)
            )

        return show

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        choice = metrics.MetricsChoice.of(request)

        async def body(kube: Kube, namespace: str, name: str) -> str:
            async with self._context.reading[request[VISITOR].name]:
                return await metrics.curves(kube, namespace, name, choice)

        return await self._streamed(request, "job_metrics.html", "metrics", body, choice=choice)

    async def logs(self, request: web.Request) -> web.StreamResponse:
        choice = logs.Choice.of(request)

        async def body(kube: Kube, namespace: str, name: str) -> str:
            async with self._context.reading[request[VISITOR].name]:
                found, remarks = await logs.last_lines(kube, namespace, name, choice)
            return render("parts/log_lines.html", lines=found, remarks=remarks)

        more = {"sizes": logs.SIZES, "times": list(logs.SINCE)}
        return await self._streamed(request, "job_logs.html", "logs", body, choice=choice, **more)

    async def _streamed(
        self,
        request: web.Request,
        template: str,
        tab: str,
        body: Callable[[Kube, str, str], Awaitable[str]],
        **more: object,
    ) -> web.StreamResponse:
        """Send the frame of a section, then its body, read with the rights of the visitor."""
        page, visitor = self._page(request), request[VISITOR]
        frame = await self._frame(
            request, page, template, tab=tab, summary=page.row.summary, **more
        )
        namespace, _, name = page.name.partition("/")
        return await streamed(request, frame, body(visitor.kube, namespace, name))

    def question(self, action: str) -> Handler:
        """Return the handler that asks before an action."""

        async def show(request: web.Request) -> web.StreamResponse:
            page = self._page(request)
            return html(await self._asked(request, page, action))

        return show

    def action(self, action: str) -> Handler:
        """Return the handler that carries an action out; after an error it asks again."""

        async def do(request: web.Request) -> web.StreamResponse:
            page, visitor = self._page(request), request[VISITOR]
            row = page.row
            form = await form_fields(request)
            if not await visitor.may(VERBS[action], row.summary.namespace, row.summary.name):
                raise web.HTTPForbidden(text=f"You may not {VERBS[action]} this HyperJob here.")
            try:
                await act(
                    visitor.kube,
                    row,
                    action,
                    target=form.get("target", ""),
                    typed=form.get("typed", ""),
                )
            except ClientError as error:
                return html(await self._asked(request, page, action, str(error)), status=409)
            except KubeError as error:
                status = error.http_code if 400 <= error.http_code < 600 else 502
                text = await self._asked(request, page, action, words(error))
                return html(text, status=status)
            where = "/hyperjobs" if action == "delete" else page.path
            raise web.HTTPSeeOther(f"{where}?done={action}")

        return do

    async def _asked(
        self, request: web.Request, page: JobPage, action: str, error: str = ""
    ) -> str:
        """Return the page with the question before an action, and the error of a try."""
        row = page.row
        if action not in available(row.summary) and not error:
            error = f"{row.summary.name} is {row.summary.phase}: this action is not possible now."
        return await self._frame(
            request,
            page,
            "confirm.html",
            tab=None,
            question=confirmation(action, row),
            error=error,
            possible=action in available(row.summary),
        )
