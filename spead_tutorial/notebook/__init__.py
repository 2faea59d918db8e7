# SPDX-License-Identifier: BSD-3-Clause
"""What the notebooks share: a place to send to, measurements, tables, pictures, exercises.

A notebook opens a lab, measures some programs there, and shows what came of it:

>>> from spead_tutorial import notebook  # doctest: +SKIP
>>> place = notebook.open_place()  # doctest: +SKIP
The lab is open: packets go to dummy1 and nowhere else.
>>> before, after = notebook.Run("6"), notebook.Run("8")  # doctest: +SKIP
>>> recording = notebook.measure(place, [before, after])  # doctest: +SKIP
>>> notebook.gain(recording, before, after).median  # doctest: +SKIP
1.41

Where there can be no lab, the same cells send over loopback, and what they show is marked. IPython,
pandas and matplotlib, which come with the extra ``[notebook]``, are imported when they are used.
"""

from spead_tutorial.notebook import exercises, making, measuring, showing
from spead_tutorial.notebook.exercises import *  # noqa: F403 - what it lists, as of the others
from spead_tutorial.notebook.making import *  # noqa: F403
from spead_tutorial.notebook.measuring import *  # noqa: F403
from spead_tutorial.notebook.showing import *  # noqa: F403

__all__ = [*exercises.__all__]
__all__ += making.__all__
__all__ += measuring.__all__
__all__ += showing.__all__
